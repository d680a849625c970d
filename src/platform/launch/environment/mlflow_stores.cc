#include "platform/launch/environment/mlflow_stores.h"

#include <spdlog/spdlog.h>

#include "platform/launch/node/node_folders.h"
#include "platform/mlflow/file_store.h"

namespace tutti::launch {
namespace {

constexpr char kUri[] = "MLFLOW_TRACKING_URI";

}  // namespace

bool NamesItsOwnMlflow(const spec::LaunchPlan& plan) {
  return plan.environment_variables.contains(kUri) || plan.environment.variables.contains(kUri);
}

std::filesystem::path MlflowStoreOf(const spec::LaunchPlan& plan, int rank) {
  return NodeFolders(plan.directory).work_outputs() / mlflow::StoreName(rank);
}

void MakeMlflowStores(const spec::LaunchPlan& plan) {
  if (NamesItsOwnMlflow(plan) || (plan.snapshot.empty() && plan.environment.is_host)) return;
  for (int i = 0; i < plan.node().process_count; ++i) {
    const auto store = MlflowStoreOf(plan, plan.node().first_rank + i);
    const absl::Status made = mlflow::MakeStore(store, plan.experiment_name);
    if (!made.ok()) spdlog::warn("{}", made.ToString());
  }
}

void RemoveUnusedMlflowStores(const spec::LaunchPlan& plan) {
  for (int i = 0; i < plan.node().process_count; ++i) {
    mlflow::RemoveUnusedStore(MlflowStoreOf(plan, plan.node().first_rank + i));
  }
}

}  // namespace tutti::launch
