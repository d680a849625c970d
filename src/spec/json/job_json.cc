#include "spec/json/job_json.h"

#include <limits>

#include "base/status.h"
#include "spec/json/flow_json.h"
#include "spec/json/json_fields.h"
#include "spec/types/names.h"

namespace tutti::spec {
namespace {
using nlohmann::json;

// null stands for "no limit": JSON has no infinity.
json JsonOfTimeout(absl::Duration timeout) {
  if (timeout == absl::InfiniteDuration()) return nullptr;
  return absl::ToDoubleSeconds(timeout);
}

void ReadTimeout(const json& document, JsonFields& fields, JobSpec& spec) {
  if (document.is_object() && document.contains("timeout_seconds") &&
      document["timeout_seconds"].is_null()) {
    fields.Ignore("timeout_seconds");
    spec.timeout = absl::InfiniteDuration();
    return;
  }
  double seconds = -1;
  fields.Read("timeout_seconds", seconds);
  if (seconds >= 0) spec.timeout = absl::Seconds(seconds);
}

json JsonOfSlurm(const SlurmSettings& slurm) {
  json document = {{"cpus_per_node", slurm.cpus_per_node},
                   {"exclusive", slurm.exclusive == true},
                   {"not_exclusive", slurm.exclusive == false},
                   {"options", slurm.options},
                   {"shape", slurm.shape}};
  for (const SlurmText& text : kSlurmTexts) document[text.key] = slurm.*text.member;
  return document;
}

void ReadSlurm(const json& document, JsonFields& fields, SlurmSettings& slurm) {
  if (!document.is_object() || !document.contains("slurm")) return;
  fields.Ignore("slurm");
  JsonFields inner(document["slurm"], fields.PathOf("slurm"), Missing::kKeepsDefault);
  for (const SlurmText& text : kSlurmTexts) inner.Read(text.key, slurm.*text.member);
  inner.Read("cpus_per_node", slurm.cpus_per_node, 0, 65536);
  bool exclusive = false, not_exclusive = false;  // neither: the compute's word
  inner.Read("exclusive", exclusive);
  inner.Read("not_exclusive", not_exclusive);
  if (exclusive || not_exclusive) slurm.exclusive = exclusive;
  inner.Read("options", slurm.options);
  inner.Read("shape", slurm.shape);
  fields.Update(inner.Finish());
}

}  // namespace

std::string ToJson(const JobSpec& spec) { return Dump(JsonOf(spec)); }

json JsonOf(const JobSpec& spec) {
  json document = {{"file_name", spec.file_name},
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
                   {"priority", JsonOf(spec.priority)}};
  // What few jobs have is written for them alone.
  if (spec.max_retries > 0) document["max_retries"] = spec.max_retries;
  if (spec.slurm != SlurmSettings()) document["slurm"] = JsonOfSlurm(spec.slurm);
  if (!spec.additional_includes.empty()) {
    document["additional_includes"] = spec.additional_includes;
  }
  if (!spec.reusable) document["reusable"] = false;
  if (!spec.container_options.empty()) document["container_options"] = spec.container_options;
  if (spec.kind != JobKind::kCommand) document["kind"] = std::string(Name(spec.kind));
  if (spec.kind == JobKind::kPipeline) {
    document["steps"] = JsonOf(spec.steps);
    document["continue_on_step_failure"] = spec.continue_on_step_failure;
    document["first_step"] = spec.first_step;
    document["last_step"] = spec.last_step;
  }
  if (spec.sweep) document["sweep"] = JsonOf(*spec.sweep);
  return document;
}

absl::Status ReadJobSpec(const json& document, const std::string& path, JobSpec& spec) {
  constexpr int kMost = std::numeric_limits<int>::max();
  JsonFields fields(document, path, Missing::kKeepsDefault);
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
  fields.Read("max_retries", spec.max_retries, 0, kMost);
  ReadSlurm(document, fields, spec.slurm);
  fields.Read("additional_includes", spec.additional_includes);
  fields.Read("reusable", spec.reusable);
  fields.Read("container_options", spec.container_options);
  std::string kind(Name(spec.kind));
  fields.Read("kind", kind);
  if (const auto known = JobKindFromName(kind)) {
    spec.kind = *known;
  } else {
    fields.Fail("kind is unknown");
  }
  ReadSteps(fields, spec.steps);
  fields.Read("continue_on_step_failure", spec.continue_on_step_failure);
  fields.Read("first_step", spec.first_step);
  fields.Read("last_step", spec.last_step);
  ReadSweepField(document, fields, spec.sweep);
  return fields.Finish();
}

absl::StatusOr<JobSpec> JobSpecFromJson(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const json document, ParseJsonObject(text, "job"));
  JobSpec spec;
  TUTTI_RETURN_IF_ERROR(base::Annotate(ReadJobSpec(document, "", spec), "job"));
  return spec;
}

}  // namespace tutti::spec
