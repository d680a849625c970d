#include "platform/launch/hooks/node_hooks.h"

#include <utility>

namespace tutti::launch {

HookList NodeHooks() {
  std::vector<std::unique_ptr<NodeHook>> hooks;
  auto [health, health_verdict] = MakeHealthHooks();  // which look beside what the others do
  hooks.push_back(std::move(health));
  hooks.push_back(MakeFoldersHook());
  hooks.push_back(MakeCodeHook());
  hooks.push_back(MakeFormerOutputsHook());
  hooks.push_back(MakeMlflowHook());
  hooks.push_back(MakePythonHook());
  hooks.push_back(MakeImageHook());
  hooks.push_back(MakeSecretsHook());
  hooks.push_back(MakeInputsHook());
  hooks.push_back(MakeReadOnlyHook());  // of what those have found
  hooks.push_back(MakeStoredOutputsHook());
  hooks.push_back(MakeCommandHook());  // which needs their paths
  hooks.push_back(MakeDistributionHook());
  hooks.push_back(MakeMpiHook());
  hooks.push_back(MakeResultsHook());
  hooks.push_back(MakePackagesHook());  // whose result is none of the job's
  hooks.push_back(std::move(health_verdict));
  return HookList(std::move(hooks));
}

}  // namespace tutti::launch
