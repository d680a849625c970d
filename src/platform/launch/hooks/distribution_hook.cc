#include "platform/launch/environment/rank_driver.h"
#include "platform/launch/hooks/node_hooks.h"

namespace tutti::launch {
namespace {

// Some distributions run a program of their own, which runs the job's command.
class DistributionHook : public NodeHook {
 public:
  absl::string_view name() const override { return "distribution"; }

  absl::Status BeforeStart(NodeContext& node, const std::atomic<bool>& /*cancelled*/) override {
    const auto command = RankDriverOf(node.plan).command;
    if (command != nullptr) node.command = command(node.plan, node.facts, node.command);
    return absl::OkStatus();
  }
  void CleanUp(const spec::LaunchPlan& plan) override {
    const auto clean_up = RankDriverOf(plan).clean_up;
    if (clean_up != nullptr) clean_up(plan);
  }
};

}  // namespace

std::unique_ptr<NodeHook> MakeDistributionHook() { return std::make_unique<DistributionHook>(); }

}  // namespace tutti::launch
