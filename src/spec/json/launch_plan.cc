#include "spec/json/launch_plan.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "spec/json/json_fields.h"

namespace tutti::spec {
namespace {
using nlohmann::json;

constexpr int kMostRanks = 10'000'000;
constexpr double kLongestWait = 1e12;

// JSON has no infinity. A time without an end is written as the longest that a reader takes.
double Finite(double seconds) {
  return std::isnan(seconds) ? 0 : std::min(std::max(seconds, 0.0), kLongestWait);
}

json JsonOfNodes(const std::vector<PlanNode>& nodes) {
  json document = json::array();
  for (const PlanNode& node : nodes) {
    document.push_back({{"name", node.name},
                        {"address", node.address},
                        {"first_rank", node.first_rank},
                        {"process_count", node.process_count}});
  }
  return document;
}

absl::Status ReadNodes(const json& document, LaunchPlan& plan) {
  int rank = 0;
  for (size_t i = 0; i < document.size(); ++i) {
    JsonFields fields(document[i], absl::StrCat("nodes[", i, "]"), Missing::kIsAnError);
    PlanNode node;
    fields.Read("name", node.name);
    fields.Read("address", node.address);
    fields.Read("first_rank", node.first_rank, 0, kMostRanks);
    fields.Read("process_count", node.process_count, 0, kMostRanks);
    TUTTI_RETURN_IF_ERROR(fields.Finish());
    if (node.first_rank != rank || node.process_count > kMostRanks - rank) {
      return absl::InvalidArgumentError(absl::StrCat(fields.PathOf("first_rank"), " must be ", rank,
                                                     ": nodes are in rank order"));
    }
    rank += node.process_count;
    plan.nodes.push_back(std::move(node));
  }
  return absl::OkStatus();
}

json JsonOf(const NodeChecks& checks) {
  return {{"command", checks.command},
          {"timeout_seconds", checks.timeout_seconds},
          {"links", checks.links}};
}

absl::StatusOr<NodeChecks> ReadChecks(const json& document) {
  NodeChecks checks;
  JsonFields fields(document, "checks", Missing::kIsAnError);
  fields.Read("command", checks.command);
  fields.Read("timeout_seconds", checks.timeout_seconds, 1, 3600);
  fields.Read("links", checks.links);
  TUTTI_RETURN_IF_ERROR(fields.Finish());
  return checks;
}

void ReadFields(JsonFields& fields, LaunchPlan& plan) {
  fields.Read("allocation_id", plan.allocation_id);
  fields.Read("job_id", plan.job_id);
  if (const json* nodes = fields.Array("nodes")) fields.Update(ReadNodes(*nodes, plan));
  fields.Read("node_index", plan.node_index, 0, static_cast<int>(plan.nodes.size()) - 1);
  fields.Read("master_port", plan.master_port, 1, 65535);
  fields.Read("start_port", plan.start_port, 0, 65535);
  fields.Read("boot_id", plan.boot_id);
  fields.Read("experiment_name", plan.experiment_name);
  fields.Read("distribution", plan.distribution);
  fields.Read("environment", plan.environment);
  fields.Read("container_options", plan.container_options);
  fields.Read("environments_directory", plan.environments_directory);
  fields.Read("command", plan.command);
  fields.Read("environment_variables", plan.environment_variables);
  fields.ReadIfThere("secret_variables", plan.secret_variables);
  fields.ReadIfThere("secret_files", plan.secret_files);
  fields.Read("snapshot", plan.snapshot);
  fields.Read("inputs", plan.inputs);
  fields.Read("outputs", plan.outputs);
  fields.Read("directory", plan.directory);
  fields.Read("attempt", plan.attempt, 1, 1'000'000);
  fields.Read("former_directory", plan.former_directory);
  fields.Read("memory_bytes", plan.memory_bytes, 0);
  fields.Read("timeout_seconds", plan.timeout_seconds);
  fields.Read("grace_seconds", plan.grace_seconds);
  fields.Read("service_file", plan.service_file);
  fields.ReadIfThere("launcher_token", plan.launcher_token);
  fields.Read("job_token", plan.job_token);
  fields.ReadIfThere("storage_program", plan.storage_program);
  fields.ReadIfThere("shared_folder", plan.shared_folder);
  fields.ReadIfThere("mounts", plan.mounts);
  fields.ReadIfThere("resume", plan.resume);
  fields.ReadIfThere("resume_outputs", plan.resume_outputs);
  if (fields.FindIfThere("courier") != nullptr) fields.Read("courier", plan.is_courier);
  if (fields.FindIfThere("usage") != nullptr) fields.Read("usage", plan.measures_usage);
  if (fields.FindIfThere("data_bytes") != nullptr) fields.Read("data_bytes", plan.data_bytes, 0);
  if (fields.FindIfThere("tracks") != nullptr) fields.Read("tracks", plan.tracks);
  fields.ReadIfThere("cores", plan.cores);
  fields.ReadIfThere("gpus", plan.gpus);
  if (const json* checks = fields.FindIfThere("checks")) {
    absl::StatusOr<NodeChecks> read = ReadChecks(*checks);
    fields.Update(read.status());
    if (read.ok()) plan.checks = *std::move(read);
  }
}

}  // namespace

int LaunchPlan::WorldSize() const {
  int size = 0;
  for (const PlanNode& node : nodes) size += node.process_count;
  return size;
}

std::string ToJson(const LaunchPlan& plan) {
  // No limit is 0 in a plan, so an infinite timeout is 0 too.
  const double timeout = std::isinf(plan.timeout_seconds) ? 0 : Finite(plan.timeout_seconds);
  json document = {{"allocation_id", plan.allocation_id},
                   {"job_id", plan.job_id},
                   {"node_index", plan.node_index},
                   {"nodes", JsonOfNodes(plan.nodes)},
                   {"master_port", plan.master_port},
                   {"start_port", plan.start_port},
                   {"boot_id", plan.boot_id},
                   {"experiment_name", plan.experiment_name},
                   {"distribution", JsonOf(plan.distribution)},
                   {"environment", JsonOf(plan.environment)},
                   {"container_options", plan.container_options},
                   {"environments_directory", plan.environments_directory},
                   {"command", plan.command},
                   {"environment_variables", plan.environment_variables},
                   {"snapshot", plan.snapshot},
                   {"inputs", JsonOf(plan.inputs)},
                   {"outputs", JsonOf(plan.outputs)},
                   {"directory", plan.directory},
                   {"attempt", plan.attempt},
                   {"former_directory", plan.former_directory},
                   {"memory_bytes", plan.memory_bytes},
                   {"timeout_seconds", timeout},
                   {"grace_seconds", Finite(plan.grace_seconds)},
                   {"service_file", plan.service_file},
                   {"launcher_token", plan.launcher_token},
                   {"job_token", plan.job_token}};
  AddPart(plan.cores, plan.gpus, document);
  if (!plan.secret_variables.empty()) document["secret_variables"] = plan.secret_variables;
  if (plan.checks) document["checks"] = JsonOf(*plan.checks);
  if (!plan.secret_files.empty()) document["secret_files"] = plan.secret_files;
  if (!plan.storage_program.empty()) document["storage_program"] = plan.storage_program;
  if (!plan.mounts.empty()) document["mounts"] = plan.mounts;
  if (!plan.shared_folder.empty()) document["shared_folder"] = plan.shared_folder;
  if (!plan.resume.empty()) {
    document["resume"] = plan.resume;
    document["resume_outputs"] = plan.resume_outputs;
  }
  if (plan.data_bytes > 0) document["data_bytes"] = plan.data_bytes;
  if (plan.is_courier) document["courier"] = true;
  if (plan.tracks) document["tracks"] = true;
  if (plan.measures_usage) document["usage"] = true;
  return Dump(document);
}

absl::StatusOr<LaunchPlan> LaunchPlanFromJson(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const json document, ParseJsonObject(text, "launch plan"));
  LaunchPlan plan;
  JsonFields fields(document, "", Missing::kIsAnError);
  ReadFields(fields, plan);
  if (const absl::Status status = fields.Finish(); !status.ok()) {
    return base::Annotate(status, "launch plan");
  }
  return plan;
}

}  // namespace tutti::spec
