// A cluster of Ray: the first node has its head and the job's command, the others serve.
#include <nlohmann/json.hpp>

#include "spec/json/json_fields.h"
#include "spec/text/mapping_reader.h"
#include "spec/types/job.h"
#include "spec/types/job_distribution.h"

namespace tutti::spec {
namespace {

constexpr int kHighestPort = 65'535;

void ReadRay(int, MappingReader& reader, JobSpec& spec, Diagnostics&) {
  RaySettings& ray = spec.distribution.ray;
  reader.Count("port", kHighestPort, ray.port);
  reader.Flag("include_dashboard", ray.dashboard);
  reader.Count("dashboard_port", kHighestPort, ray.dashboard_port);
  reader.Text("head_node_additional_args", ray.head_options);
  reader.Text("worker_node_additional_args", ray.worker_options);
}

void WriteJsonOfRay(const Distribution& from, nlohmann::json& document) {
  document["ray"] = {{"port", from.ray.port},
                     {"dashboard", from.ray.dashboard},
                     {"dashboard_port", from.ray.dashboard_port},
                     {"head_options", from.ray.head_options},
                     {"worker_options", from.ray.worker_options}};
}

void ReadJsonOfRay(JsonFields& fields, Distribution& to) {
  fields.ReadObject("ray", [&](JsonFields& ray) {
    ray.Read("port", to.ray.port, 0, kHighestPort);
    ray.Read("dashboard", to.ray.dashboard);
    ray.Read("dashboard_port", to.ray.dashboard_port, 0, kHighestPort);
    ray.Read("head_options", to.ray.head_options);
    ray.Read("worker_options", to.ray.worker_options);
  });
}

int ServersOfRay(const Distribution&, int nodes) { return nodes - 1; }

std::optional<StartPort> StartPortOfRay(const Distribution& distribution, int) {
  return StartPort{.asked = distribution.ray.port,
                   .usual = 6379,  // Ray's own
                   .on_all_addresses = true};
}

absl::string_view TcpOfRay(bool) { return "Ray's objects go over TCP past it"; }

constexpr std::pair<absl::string_view, absl::string_view> kVariablesOfRay[] = {
    {"RAY_ADDRESS", "the head of the job's own cluster"}};

}  // namespace

extern const DistributionDriver kRay;
const DistributionDriver kRay = {.type = "ray",
                                 .count_key = "",
                                 .read = ReadRay,
                                 .write_json = WriteJsonOfRay,
                                 .read_json = ReadJsonOfRay,
                                 .server_count = ServersOfRay,
                                 .server_words = {"its command", "Ray on the other nodes"},
                                 .start_port = StartPortOfRay,
                                 .program = "ray",
                                 .variables = kVariablesOfRay,
                                 .talks_over_tcp = TcpOfRay};

}  // namespace tutti::spec
