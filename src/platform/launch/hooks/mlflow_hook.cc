#include "platform/launch/environment/mlflow_stores.h"
#include "platform/launch/hooks/node_hooks.h"

namespace tutti::launch {
namespace {

class MlflowHook : public NodeHook {
 public:
  absl::string_view name() const override { return "MLflow stores"; }

  absl::Status Prepare(NodeContext& node, const std::atomic<bool>& /*cancelled*/) override {
    node.facts.mlflow_run = MakeMlflowStores(node.plan);
    return absl::OkStatus();
  }
  void AfterEnd(const spec::LaunchPlan& plan) override { RemoveUnusedMlflowStores(plan); }
};

}  // namespace

std::unique_ptr<NodeHook> MakeMlflowHook() { return std::make_unique<MlflowHook>(); }

}  // namespace tutti::launch
