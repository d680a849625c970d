#include "spec/file/job_file.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text/closest.h"
#include "spec/command/command_reader.h"
#include "spec/command/job_data.h"
#include "spec/command/job_sections.h"
#include "spec/command/tutti_keys.h"
#include "spec/environment/contract_variables.h"
#include "spec/environment/job_environment.h"
#include "spec/file/batch_script.h"
#include "spec/flow/pipeline_reader.h"
#include "spec/flow/step_outputs.h"
#include "spec/flow/sweep_reader.h"
#include "spec/site/read_context.h"
#include "spec/text/mapping_reader.h"
#include "spec/text/other_kinds.h"
#include "spec/text/preview_mark.h"

namespace tutti::spec {
namespace {

constexpr std::array<absl::string_view, 3> kJobTypes = {"command", "pipeline", "sweep"};

// Refuses a file in the preview schema with one error, since nearly every key would be reported
// otherwise.
absl::Status RefusePreview(const YamlNode& root, Diagnostics& diagnostics) {
  const auto mark = FindPreviewMark(root);
  if (!mark) return absl::OkStatus();
  const std::string& file = diagnostics.file_name();
  diagnostics.Error(mark->line,
                    absl::StrCat("this is Azure ML's preview schema of 2021 (", mark->what,
                                 "): `tutti job upgrade ", file,
                                 "` shows the job in today's schema, and writes it with --save"));
  return diagnostics.status();
}

// Refuses a type that Azure ML runs and tutti does not, with that one error: any other would be
// about a kind of job that is not run anyway.
absl::Status CheckType(const YamlNode& root, Diagnostics& diagnostics) {
  const YamlNode::Entry* const type = FindEntry(root, "type");
  const std::string schema = SchemaOf(root);
  const std::string name = absl::AsciiStrToLower(
      type ? type->value->scalar : schema.substr(0, std::min(schema.find("job."), schema.size())));
  const absl::string_view reason = NotRunBecause(name);
  if (reason.empty()) return absl::OkStatus();
  const YamlNode::Entry* const at = type ? type : FindEntry(root, "$schema");
  diagnostics.Error(at->line, absl::StrCat("jobs of type ", name, " are not run: ", reason));
  return diagnostics.status();
}

// "command", "pipeline" or "sweep", by `type`, else by the schema, else by what only one has.
std::string TypeOf(const YamlNode& root, Diagnostics& diagnostics) {
  const YamlNode::Entry* entry = FindEntry(root, "type");
  if (entry == nullptr || entry->value->kind != YamlNode::Kind::kScalar) {
    const std::string schema = SchemaOf(root);
    for (const absl::string_view type : {"pipeline", "sweep"}) {
      if (absl::StartsWith(schema, absl::StrCat(type, "job."))) return std::string(type);
    }
    if (!schema.empty() || FindEntry(root, "command") != nullptr) return "command";
    return FindEntry(root, "jobs") ? "pipeline" : FindEntry(root, "trial") ? "sweep" : "command";
  }
  const std::string type = entry->value->scalar;
  for (const absl::string_view known : kJobTypes) {
    if (absl::EqualsIgnoreCase(type, known)) return std::string(known);
  }
  diagnostics.Error(entry->line, absl::StrCat("job type \"", type.substr(0, 80),
                                              "\" is not supported: this version runs jobs of "
                                              "type command, pipeline and sweep",
                                              base::DidYouMean(type.substr(0, 80), kJobTypes)));
  return "command";
}

// Warns where the file's $schema is that of another type than it is read as.
void CheckSchema(const YamlNode& root, absl::string_view type, Diagnostics& diagnostics) {
  const std::string schema = SchemaOf(root);
  const size_t end = schema.find("job.");
  if (end == std::string::npos || absl::string_view(schema).substr(0, end) == type) return;
  diagnostics.Warning(
      FindEntry(root, "$schema")->line,
      absl::StrCat("$schema is that of ", schema.substr(0, std::min<size_t>(end, 80)),
                   " jobs, but the job is read as its type says: ", type));
}

JobSpec ReadCommandJob(const Source& source) {
  JobSpec spec;
  spec.compute = "local";
  CommandReader job(source, "a job file", {"command", ""});
  std::string unused;
  job.keys().Text("$schema", unused);
  job.keys().Text("type", unused);
  job.ReadIdentity(spec);
  job.ReadCommand(spec);
  job.ReadVariables(spec);
  job.ReadCode(spec);
  job.ReadEnvironmentKey(spec);
  job.ReadCompute("compute", spec);
  spec.inputs = ReadInputs(job.keys(), source.context, source.diagnostics);
  spec.outputs = ReadOutputs(job.keys(), source.context, source.diagnostics);
  job.CheckReferences(spec);
  ReadSections(job.keys(), source.context.site, spec, source.diagnostics);
  job.Finish(spec);
  return spec;
}

// A compute that has a file becomes what it stands for, in every job of the tree.
void ResolveCompute(const Site& site, JobSpec& spec, Diagnostics& diagnostics) {
  for (Step& step : spec.steps) ResolveCompute(site, step.job, diagnostics);
  const auto found = site.compute_files.find(spec.compute);
  if (found == site.compute_files.end()) return;
  const ComputeFile& compute = found->second;
  spec.compute = compute.stands_for;
  if (spec.compute != "local" && !site.slurm_computes.contains(spec.compute)) {
    diagnostics.Error({spec.file_name, spec.command_line},
                      absl::StrCat("compute \"", compute.name, "\" stands for \"", spec.compute,
                                   "\", which site.yml does not have"));
    spec.compute.clear();
  }
  const int most = compute.max_instances;
  if (most == 0 || spec.kind == JobKind::kPipeline || spec.instance_count <= most) return;
  diagnostics.Error(spec.instance_count_location,
                    absl::StrCat("instance_count is ", spec.instance_count, ", but compute \"",
                                 compute.name, "\" lets a job take ", most,
                                 most == 1 ? " node" : " nodes", " (max_instances of its file)"));
  spec.instance_count = 1;  // nothing else is said of it
}

// Says which of the variables that a job of the tree sets have no effect.
void WarnOfContract(const JobSpec& spec, Diagnostics& diagnostics) {
  for (const Step& step : spec.steps) WarnOfContract(step.job, diagnostics);
  const auto warn = [&](const SourceLocation& location, const std::string& name,
                        absl::string_view what) {
    const auto value = SetByTutti(spec, name);
    if (!value) return;
    diagnostics.Warning(location,
                        absl::StrCat(what, name, " has no effect: tutti sets it in every ",
                                     "process, to ", *value));
  };
  for (const auto& [name, location] : spec.variable_locations) {
    warn(location, name, "environment_variables.");
  }
  for (const auto* secrets : {&spec.secret_variables, &spec.secret_files}) {
    for (const auto& [name, secret] : *secrets) {
      warn(spec.secrets_location, name, "resources.properties.tutti.secrets.");
    }
  }
  for (const auto& [name, value] : spec.environment.variables) {
    if (spec.environment_variables.contains(name)) continue;
    warn(spec.environment_location, name, "environment: its variable ");
  }
}

// Clears each command that is in doubt, so that nothing checks it.
void LeaveOutDoubtful(JobSpec& spec) {
  if (spec.command_in_doubt) spec.command.clear();
  for (Step& step : spec.steps) LeaveOutDoubtful(step.job);
}

// Adds advice on scripts to an error, unless the file's name says that it is YAML or JSON: the user
// may have meant a script.
absl::Status OrAScript(const absl::Status& status, absl::string_view file_name) {
  for (const absl::string_view end : {".yml", ".yaml", ".json"}) {
    if (absl::EndsWithIgnoreCase(file_name, end)) return status;
  }
  return absl::Status(status.code(),
                      absl::StrCat(status.message(),
                                   "; a script needs a first line that begins with \"#!\", or a "
                                   "name that ends in .py or .sh"));
}

// Refuses a file that is no job of today's schema, or of a type that is not run.
absl::Status CheckFile(const YamlNode& root, Diagnostics& diagnostics) {
  if (root.kind != YamlNode::Kind::kMapping) {
    MappingReader(root, "a job file", diagnostics);
    return OrAScript(diagnostics.status(), diagnostics.file_name());
  }
  TUTTI_RETURN_IF_ERROR(CheckKind("job", root, diagnostics));
  TUTTI_RETURN_IF_ERROR(RefusePreview(root, diagnostics));
  return CheckType(root, diagnostics);
}

JobSpec ReadByType(absl::string_view type, const Source& source) {
  if (type == "pipeline") return ReadPipelineJob(source);
  return type == "sweep" ? ReadSweepJob(source) : ReadCommandJob(source);
}

}  // namespace

Reading ReadAllOfJobFile(absl::string_view text, absl::string_view file_name,
                         const std::filesystem::path& base_directory, const Site& site,
                         const ReadFileFunction& read_file) {
  if (IsBatchScript(text)) return ReadBatchScript(text, file_name, base_directory, site);
  const auto root = ParseYaml(text, file_name);
  if (!root.ok()) return {.faults = OrAScript(root.status(), file_name), .is_job = false};
  Diagnostics diagnostics(file_name);
  if (absl::Status other = CheckFile(**root, diagnostics); !other.ok()) {
    return {.faults = other, .is_job = false};
  }
  int files_left = kMostFiles;
  const ReadContext context{base_directory, site, read_file, files_left,
                            std::filesystem::path(std::string(file_name)).parent_path()};
  const std::string type = TypeOf(**root, diagnostics);
  CheckSchema(**root, type, diagnostics);
  JobSpec spec = ReadByType(type, {**root, text, context, diagnostics});
  if (spec.file_name.empty()) spec.file_name = std::string(file_name);
  ResolveCompute(site, spec, diagnostics);
  WarnOfContract(spec, diagnostics);
  CheckMounts(spec, diagnostics);
  SpreadOutputPlaces(spec, diagnostics);
  LeaveOutDoubtful(spec);
  absl::Status faults = InFileOrder(diagnostics.status(), spec);
  return {{std::move(spec), diagnostics.warnings()}, std::move(faults)};
}

absl::StatusOr<ReadResult> ReadJobFile(absl::string_view text, absl::string_view file_name,
                                       const std::filesystem::path& base_directory,
                                       const Site& site, const ReadFileFunction& read_file) {
  Reading reading = ReadAllOfJobFile(text, file_name, base_directory, site, read_file);
  TUTTI_RETURN_IF_ERROR(reading.faults);
  return std::move(reading.job);
}

absl::StatusOr<ReadResult> ReadJobFile(absl::string_view text, absl::string_view file_name,
                                       const std::filesystem::path& base_directory,
                                       const Site& site) {
  return ReadJobFile(text, file_name, base_directory, site, ReadFromDisk);
}

absl::StatusOr<Environment> ReadEnvironmentFile(const std::filesystem::path& file,
                                                const Site& site) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, ReadFromDisk(file));
  TUTTI_ASSIGN_OR_RETURN(const auto root, ParseYaml(text, file.string()));
  Diagnostics diagnostics(file.string());
  TUTTI_RETURN_IF_ERROR(CheckKind("environment", *root, diagnostics));
  int files_left = kMostFiles;
  const ReadFileFunction read_file = ReadFromDisk;
  const ReadContext context{std::filesystem::absolute(file).parent_path(), site, read_file,
                            files_left, file.parent_path()};
  Environment environment = ReadWholeEnvironment(*root, context, diagnostics);
  TUTTI_RETURN_IF_ERROR(diagnostics.status());
  return environment;
}

absl::StatusOr<std::optional<DataPlace>> LogsPlaceOfSite(const Site& site) {
  if (site.keep_logs.empty()) return std::nullopt;
  auto place = LogsPlace(site.keep_logs, site);
  if (place.ok()) return *std::move(place);
  return absl::InvalidArgumentError(
      absl::StrCat(site.keep_logs_location, ": keep_logs: ", place.status().message()));
}

}  // namespace tutti::spec
