#include "platform/service/attempt/job_placement.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tutti::service {

using nlohmann::json;

Placement Place(const spec::JobSpec& spec, std::string allocation,
                const std::vector<engine::Node>& nodes, int master_port) {
  Placement placement{.allocation = std::move(allocation), .master_port = master_port};
  const int world = spec.WorldSize();
  const int count = static_cast<int>(nodes.size());
  int rank = 0;
  for (int i = 0; i < count; ++i) {
    const int processes = world / count + (i < world % count ? 1 : 0);
    placement.nodes.push_back({.name = nodes[i].name,
                               .address = nodes[i].address,
                               .directory = nodes[i].directory,
                               .memory_bytes = nodes[i].memory_bytes,
                               .first_rank = rank,
                               .process_count = processes});
    rank += processes;
  }
  return placement;
}

std::string JobOfAllocation(absl::string_view allocation) {
  const size_t dot = allocation.rfind('.');
  if (dot == absl::string_view::npos || dot == 0 || dot + 1 == allocation.size()) return "";
  const std::pair<absl::string_view, absl::string_view> numbers =
      absl::StrSplit(allocation.substr(dot + 1), absl::MaxSplits('-', 1));
  for (const absl::string_view number : {numbers.first, numbers.second}) {
    if (!std::all_of(number.begin(), number.end(), absl::ascii_isdigit)) return "";
  }
  return numbers.first.empty() ? "" : std::string(allocation.substr(0, dot));
}

int AttemptOf(absl::string_view allocation) {
  if (JobOfAllocation(allocation).empty()) return 1;
  const absl::string_view number = allocation.substr(allocation.rfind('.') + 1);
  const size_t dash = number.find('-');
  int attempt = 1;
  return dash != absl::string_view::npos && absl::SimpleAtoi(number.substr(dash + 1), &attempt)
             ? attempt
             : 1;
}

std::string ToJson(const Placement& placement) {
  json nodes = json::array();
  for (const PlacedNode& node : placement.nodes) {
    nodes.push_back({{"name", node.name},
                     {"address", node.address},
                     {"directory", node.directory},
                     {"memory_bytes", node.memory_bytes},
                     {"first_rank", node.first_rank},
                     {"process_count", node.process_count}});
    if (node.cores.empty()) continue;
    nodes.back()["cores"] = node.cores;
    nodes.back()["gpus"] = node.gpus;
  }
  return json{{"id", placement.allocation},
              {"master_port", placement.master_port},
              {"start_port", placement.start_port},
              {"boot_id", placement.boot_id},
              {"nodes", std::move(nodes)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

absl::StatusOr<Placement> PlacementFromJson(absl::string_view text) {
  try {
    const json value = json::parse(text.begin(), text.end());
    Placement placement{.allocation = value.at("id").get<std::string>(),
                        .master_port = value.at("master_port").get<int>(),
                        .start_port = value.value("start_port", 0),
                        .boot_id = value.value("boot_id", "")};
    for (const json& node : value.at("nodes")) {
      placement.nodes.push_back({.name = node.at("name").get<std::string>(),
                                 .address = node.at("address").get<std::string>(),
                                 .directory = node.at("directory").get<std::string>(),
                                 .memory_bytes = node.at("memory_bytes").get<int64_t>(),
                                 .first_rank = node.at("first_rank").get<int>(),
                                 .process_count = node.at("process_count").get<int>()});
      if (!node.contains("cores")) continue;
      node.at("cores").get_to(placement.nodes.back().cores);
      node.at("gpus").get_to(placement.nodes.back().gpus);
    }
    return placement;
  } catch (const json::exception& error) {
    return absl::DataLossError(absl::StrCat("an event's allocation is damaged: ", error.what()));
  }
}

spec::LaunchPlan SharedPlanOf(const store::Job& job, const Placement& placement,
                              const std::filesystem::path& service_file, absl::Duration grace) {
  spec::LaunchPlan plan{
      .allocation_id = placement.allocation,
      .job_id = job.id,
      .master_port = placement.master_port,
      .start_port = placement.start_port,
      .boot_id = placement.boot_id,
      .experiment_name = job.spec.experiment_name,
      .distribution = job.spec.distribution,
      .environment = job.spec.environment,
      .container_options = job.spec.container_options,
      .environments_directory = (service_file.parent_path() / "environments").native(),
      .command = job.spec.command,
      .environment_variables = job.spec.environment_variables,
      .secret_variables = job.spec.secret_variables,
      .secret_files = job.spec.secret_files,
      .snapshot = job.snapshot,
      .inputs = job.spec.inputs,
      .mounts = job.spec.mounts,
      .outputs = job.spec.outputs,
      .grace_seconds = absl::ToDoubleSeconds(grace),
      .service_file = service_file.native(),
      .job_token = job.job_token};
  if (job.spec.timeout != absl::InfiniteDuration()) {
    plan.timeout_seconds = absl::ToDoubleSeconds(job.spec.timeout);
  }
  if (!job.spec.resume.empty()) {
    plan.resume = job.spec.resume;
    plan.resume_outputs =
        (service_file.parent_path() / "jobs" / job.spec.resume / "outputs").native();
  }
  for (const PlacedNode& node : placement.nodes) {
    plan.nodes.push_back({.name = node.name,
                          .address = node.address,
                          .first_rank = node.first_rank,
                          .process_count = node.process_count});
  }
  return plan;
}

std::vector<spec::NodePart> NodePartsOf(const Placement& placement) {
  std::vector<spec::NodePart> parts;
  for (const PlacedNode& node : placement.nodes) {
    const std::filesystem::path directory = std::filesystem::path(node.directory);
    parts.push_back({.node_index = static_cast<int>(parts.size()),
                     .directory = (directory / placement.allocation).native(),
                     .memory_bytes = node.memory_bytes,
                     .cores = node.cores,
                     .gpus = node.gpus});
  }
  return parts;
}

}  // namespace tutti::service
