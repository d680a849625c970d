// HookList calls its hooks in the order of the list, in every step alike. A hook sees what those
// before it have made. Thread-compatible; Abandon may come from another thread than Prepare.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platform/launch/hooks/node_hook.h"

namespace tutti::launch {

class HookList {
 public:
  explicit HookList(std::vector<std::unique_ptr<NodeHook>> hooks) : hooks_(std::move(hooks)) {}

  bool PreparesSlowly(const spec::LaunchPlan& plan) const;
  bool StartsSlowly(const spec::LaunchPlan& plan) const;

  // The first error ends these two.
  absl::Status Prepare(NodeContext& node, const std::atomic<bool>& cancelled) const;
  absl::Status BeforeStart(NodeContext& node, const std::atomic<bool>& cancelled) const;
  void Abandon(NodeContext& node) const;

  void AfterEnd(const spec::LaunchPlan& plan) const;
  void Describe(const NodeContext& node, bool failed, Results& results, nlohmann::json& left) const;
  absl::Status AfterResults(NodeContext& node) const;
  bool HasToStore(const spec::LaunchPlan& plan) const;
  absl::Status Store(NodeContext& node, Storing how, const std::atomic<bool>& cancelled) const;
  void CleanUp(const spec::LaunchPlan& plan) const;

 private:
  const std::vector<std::unique_ptr<NodeHook>> hooks_;
};

}  // namespace tutti::launch
