// TensorFlow's workers and parameter servers.
#include "absl/strings/str_cat.h"
#include "spec/text/diagnostics.h"
#include "spec/text/mapping_reader.h"
#include "spec/types/job.h"
#include "spec/types/job_distribution.h"

namespace tutti::spec {
namespace {

constexpr int kMostOfTensorFlow = 100'000;  // workers, or parameter servers

int WorldSizeOfTensorFlow(const Distribution& distribution, int) {
  return distribution.worker_count + distribution.parameter_server_count;
}

int ServersOfTensorFlow(const Distribution& distribution, int) {
  return distribution.parameter_server_count;
}

void ReadTensorFlow(int line, MappingReader& reader, JobSpec& spec, Diagnostics& diagnostics) {
  Distribution& distribution = spec.distribution;
  distribution.worker_count = spec.instance_count;
  reader.Count("worker_count", kMostOfTensorFlow, distribution.worker_count);
  const YamlNode::Entry* servers = reader.Take("parameter_server_count");
  if (servers != nullptr && servers->value->scalar != "0") {
    reader.Count("parameter_server_count", kMostOfTensorFlow, distribution.parameter_server_count);
  }
  if (spec.WorldSize() < spec.instance_count) {
    diagnostics.Error(line, absl::StrCat("worker_count and parameter_server_count make ",
                                         spec.WorldSize(), " processes for ", spec.instance_count,
                                         " nodes: each node needs at least one"));
  }
}

absl::string_view TcpOfTensorFlow(bool) {
  return "TensorFlow's own strategies talk over TCP past it; Horovod, which is tutti's, uses it";
}

constexpr std::pair<absl::string_view, absl::string_view> kVariablesOfTensorFlow[] = {
    {"TF_CONFIG", "the cluster that the job's distribution makes"}};

}  // namespace

extern const DistributionDriver kTensorFlow;
const DistributionDriver kTensorFlow = {
    .type = "tensorflow",
    .count_key = "worker_count",
    .counts_all = true,
    .read = ReadTensorFlow,
    .world_size = WorldSizeOfTensorFlow,
    .server_count = ServersOfTensorFlow,
    .server_words = {"its chief, worker 0,", "the parameter servers"},
    .variables = kVariablesOfTensorFlow,
    .talks_over_tcp = TcpOfTensorFlow};

}  // namespace tutti::spec
