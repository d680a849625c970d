#include <filesystem>
#include <system_error>

#include "platform/launch/environment/ray_cluster.h"
#include "platform/launch/hooks/node_hooks.h"

namespace tutti::launch {
namespace {

bool IsRay(const spec::LaunchPlan& plan) {
  return plan.distribution.kind == spec::DistributionKind::kRay;
}

// The nodes of a Ray job run Ray, and the first one the job's command then.
class RayHook : public NodeHook {
 public:
  absl::string_view name() const override { return "Ray"; }

  absl::Status BeforeStart(NodeContext& node, const std::atomic<bool>& /*cancelled*/) override {
    if (IsRay(node.plan)) node.command = RayCommand(node.plan, node.facts, node.command);
    return absl::OkStatus();
  }
  void CleanUp(const spec::LaunchPlan& plan) override {
    std::error_code error;
    if (IsRay(plan)) std::filesystem::remove_all(RayFolder(plan), error);
  }
};

}  // namespace

std::unique_ptr<NodeHook> MakeRayHook() { return std::make_unique<RayHook>(); }

}  // namespace tutti::launch
