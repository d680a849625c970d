#include "spec/job_json.h"

#include <limits>

#include "base/status.h"
#include "spec/json_fields.h"

namespace tutti::spec {
namespace {
using nlohmann::json;

// null stands for "no limit": JSON has no infinity.
json JsonOfTimeout(absl::Duration timeout) {
  if (timeout == absl::InfiniteDuration()) return nullptr;
  return absl::ToDoubleSeconds(timeout);
}

void ReadTimeout(const json& document, JsonFields& fields, JobSpec& spec) {
  if (document.contains("timeout_seconds") && document["timeout_seconds"].is_null()) {
    fields.Ignore("timeout_seconds");
    spec.timeout = absl::InfiniteDuration();
    return;
  }
  double seconds = -1;
  fields.Read("timeout_seconds", seconds);
  if (seconds >= 0) spec.timeout = absl::Seconds(seconds);
}

}  // namespace

std::string ToJson(const JobSpec& spec) {
  return Dump({{"file_name", spec.file_name},
               {"name", spec.name},
               {"display_name", spec.display_name},
               {"experiment_name", spec.experiment_name},
               {"description", spec.description},
               {"tags", spec.tags},
               {"command", spec.command},
               {"command_line", spec.command_line},
               {"code", spec.code},
               {"code_line", spec.code_line},
               {"environment", JsonOf(spec.environment)},
               {"environment_variables", spec.environment_variables},
               {"compute", spec.compute},
               {"inputs", JsonOf(spec.inputs)},
               {"outputs", JsonOf(spec.outputs)},
               {"distribution", JsonOf(spec.distribution)},
               {"instance_count", spec.instance_count},
               {"timeout_seconds", JsonOfTimeout(spec.timeout)},
               {"priority", JsonOf(spec.priority)}});
}

absl::StatusOr<JobSpec> JobSpecFromJson(absl::string_view text) {
  constexpr int kMost = std::numeric_limits<int>::max();
  TUTTI_ASSIGN_OR_RETURN(const json document, ParseJsonObject(text, "job"));
  JobSpec spec;
  JsonFields fields(document, "", Missing::kKeepsDefault);
  fields.Read("file_name", spec.file_name);
  fields.Read("name", spec.name);
  fields.Read("display_name", spec.display_name);
  fields.Read("experiment_name", spec.experiment_name);
  fields.Read("description", spec.description);
  fields.Read("tags", spec.tags);
  fields.Read("command", spec.command);
  fields.Read("command_line", spec.command_line, 0, kMost);
  fields.Read("code", spec.code);
  fields.Read("code_line", spec.code_line, 0, kMost);
  fields.Read("environment", spec.environment);
  fields.Read("environment_variables", spec.environment_variables);
  fields.Read("compute", spec.compute);
  fields.Read("inputs", spec.inputs);
  fields.Read("outputs", spec.outputs);
  fields.Read("distribution", spec.distribution);
  fields.Read("instance_count", spec.instance_count, 1, kMost);
  ReadTimeout(document, fields, spec);
  fields.Read("priority", spec.priority);
  if (const absl::Status status = fields.Finish(); !status.ok()) {
    return base::Annotate(status, "job");
  }
  return spec;
}

}  // namespace tutti::spec
