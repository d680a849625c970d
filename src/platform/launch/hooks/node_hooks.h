// Lists the hooks of a node.
#pragma once

#include <memory>
#include <utility>

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
std::unique_ptr<NodeHook> MakeReadOnlyHook();
std::unique_ptr<NodeHook> MakeStoredOutputsHook();
std::unique_ptr<NodeHook> MakeCommandHook();
std::unique_ptr<NodeHook> MakeDistributionHook();
std::unique_ptr<NodeHook> MakeMpiHook();
std::unique_ptr<NodeHook> MakeResultsHook();
std::unique_ptr<NodeHook> MakePackagesHook();
// Makes the first and the last hook of all: that which begins to look at the node, and that which
// ends the look.
std::pair<std::unique_ptr<NodeHook>, std::unique_ptr<NodeHook>> MakeHealthHooks();

}  // namespace tutti::launch
