// Whatever stands in a plan's addresses, TF_CONFIG is JSON that says the same.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "platform/launch/distribution/tensorflow_cluster.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  tutti::spec::LaunchPlan plan;
  const int workers = data[0] % 8, servers = data[1] % 8;
  plan.distribution.type = "tensorflow";
  plan.distribution.worker_count = workers;
  plan.distribution.parameter_server_count = servers;
  plan.master_port = 1 + data[2] * 256;
  const std::string address(reinterpret_cast<const char*>(data + 3), size - 3);
  plan.nodes = {{"n1", address, 0, workers}, {"n2", address, workers, servers}};
  for (int rank = 0; rank < workers + servers; ++rank) {
    const auto config = nlohmann::json::parse(tutti::launch::TfConfig(plan, rank));
    if (config["cluster"]["worker"].size() != static_cast<size_t>(workers)) std::abort();
    if (config["task"]["index"] != (rank < workers ? rank : rank - workers)) std::abort();
  }
  return 0;
}
