// Lists the hooks of a node.
#pragma once

#include <memory>

#include "platform/launch/hooks/hook_list.h"

namespace tutti::launch {

// Returns all hooks, in the order in which they are called.
HookList NodeHooks();

// Makes a hook, each in its NAME_hook.cc.
std::unique_ptr<NodeHook> MakeFoldersHook();
std::unique_ptr<NodeHook> MakeCodeHook();
std::unique_ptr<NodeHook> MakeFormerOutputsHook();
std::unique_ptr<NodeHook> MakeMlflowHook();
std::unique_ptr<NodeHook> MakePythonHook();
std::unique_ptr<NodeHook> MakeImageHook();
std::unique_ptr<NodeHook> MakeSecretsHook();
std::unique_ptr<NodeHook> MakeInputsHook();
std::unique_ptr<NodeHook> MakeCommandHook();
std::unique_ptr<NodeHook> MakeRayHook();
std::unique_ptr<NodeHook> MakeMpiHook();
std::unique_ptr<NodeHook> MakeResultsHook();

}  // namespace tutti::launch
