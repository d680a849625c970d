#include "platform/launch/distribution/tensorflow_cluster.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace tutti::launch {
namespace {

// Ports wrap into the unprivileged range; neighbours in rank never meet.
int PortOf(const spec::LaunchPlan& plan, int rank) {
  const int port = plan.master_port + 1 + rank;
  return port <= 65535 ? port : 1024 + (port - 65536) % (65536 - 1024);
}

std::string HostOf(const spec::LaunchPlan& plan, int rank) {
  for (const spec::PlanNode& node : plan.nodes) {
    if (rank >= node.first_rank && rank < node.first_rank + node.process_count) {
      return absl::StrCat(node.address, ":", PortOf(plan, rank));
    }
  }
  return "";
}

std::vector<std::string> HostsOf(const spec::LaunchPlan& plan, absl::string_view type) {
  std::vector<std::string> hosts;
  for (int rank = 0; rank < plan.WorldSize(); ++rank) {
    if (TaskOf(plan, rank).type == type) hosts.push_back(HostOf(plan, rank));
  }
  return hosts;
}

}  // namespace

TensorFlowTask TaskOf(const spec::LaunchPlan& plan, int rank) {
  const int workers = plan.distribution.worker_count;
  return rank < workers ? TensorFlowTask{"worker", rank} : TensorFlowTask{"ps", rank - workers};
}

std::vector<std::string> WorkerHosts(const spec::LaunchPlan& plan) {
  return HostsOf(plan, "worker");
}

std::vector<std::string> ParameterServerHosts(const spec::LaunchPlan& plan) {
  return HostsOf(plan, "ps");
}

std::string TfConfig(const spec::LaunchPlan& plan, int rank) {
  nlohmann::json cluster = {{"worker", WorkerHosts(plan)}};
  if (plan.distribution.parameter_server_count > 0) cluster["ps"] = ParameterServerHosts(plan);
  const TensorFlowTask task = TaskOf(plan, rank);
  return nlohmann::json{{"cluster", cluster},
                        {"task", {{"type", task.type}, {"index", task.index}}},
                        {"environment", "cloud"}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

namespace {

void SetContractOfTensorFlow(const spec::LaunchPlan& plan, int rank, Variables& v) {
  v["TF_CONFIG"] = TfConfig(plan, rank);
  const TensorFlowTask task = TaskOf(plan, rank);
  v["AZ_BATCHAI_TASK_INDEX"] = absl::StrCat(task.index);
  v["AZ_BATCHAI_WORKER_HOSTS"] = absl::StrJoin(WorkerHosts(plan), ",");
  v["AZ_BATCHAI_PS_HOSTS"] = absl::StrJoin(ParameterServerHosts(plan), ",");
  v["AZUREML_PROCESS_NAME"] = absl::StrCat(task.type, "_", task.index);
}

}  // namespace

extern const RankDriver kTensorFlowRanks;
const RankDriver kTensorFlowRanks = {.type = "tensorflow", .set_contract = SetContractOfTensorFlow};

}  // namespace tutti::launch
