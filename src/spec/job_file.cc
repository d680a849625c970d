#include "spec/job_file.h"

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/closest.h"
#include "base/file.h"
#include "base/status.h"
#include "spec/azure_keys.h"
#include "spec/command_reader.h"
#include "spec/job_data.h"
#include "spec/job_environment.h"
#include "spec/job_scale.h"
#include "spec/pipeline_reader.h"
#include "spec/read_context.h"
#include "spec/sweep_reader.h"

namespace tutti::spec {
namespace {

constexpr std::array<absl::string_view, 3> kJobTypes = {"command", "pipeline", "sweep"};
constexpr int kMostFiles = 512;  // that a job file and those it names bring in
constexpr uint64_t kLargestFile = 1 << 20;

absl::StatusOr<std::string> ReadFromDisk(const std::filesystem::path& file) {
  return base::ReadFile(file, kLargestFile);
}

const YamlNode::Entry* Find(const YamlNode& root, absl::string_view key) {
  for (const YamlNode::Entry& entry : root.entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

// "https://…/pipelineJob.schema.json" -> "pipelinejob.schema.json"; "" without a $schema.
std::string SchemaFile(const YamlNode& root) {
  const YamlNode::Entry* entry = Find(root, "$schema");
  if (entry == nullptr) return "";
  const std::string schema = absl::AsciiStrToLower(entry->value->scalar);
  return schema.substr(schema.rfind('/') + 1);
}

// What to do with a file that is no job.
std::string Advice(absl::string_view kind) {
  if (kind == "environment") return "name it in a job file as environment: file:PATH";
  if (kind == "data") return "make it known by `tutti data create --file FILE`";
  if (kind == "component") return "name it in a pipeline's step as component: PATH";
  return std::string(FindAzureKey(kind, "$schema")->note);
}

// Files of other kinds are told apart at once: all else would be said of the wrong one.
absl::Status CheckKind(const YamlNode& root, Diagnostics& diagnostics) {
  static constexpr struct {
    absl::string_view schema, kind;
  } kOthers[] = {{"pipelinecomponent.", "component"},
                 {"environment.", "environment"},
                 {"data.", "data"},
                 {"compute", "compute"}};
  const std::string name = SchemaFile(root);
  for (const auto& [other, kind] : kOthers) {
    const bool is_it =
        absl::StartsWith(name, other) || (kind == "compute" && absl::StrContains(name, kind));
    if (name.empty() || !is_it) continue;
    diagnostics.Error(Find(root, "$schema")->line,
                      absl::StrCat("this is a file of kind ", kind, ": ", Advice(kind)));
  }
  return diagnostics.status();
}

// "command", "pipeline" or "sweep", by `type` or else by the schema.
std::string TypeOf(const YamlNode& root, Diagnostics& diagnostics) {
  const YamlNode::Entry* entry = Find(root, "type");
  if (entry == nullptr || entry->value->kind != YamlNode::Kind::kScalar) {
    const std::string schema = SchemaFile(root);
    for (const absl::string_view type : {"pipeline", "sweep"}) {
      if (absl::StartsWith(schema, absl::StrCat(type, "job."))) return std::string(type);
    }
    return "command";
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
  spec.outputs = ReadOutputs(job.keys(), source.diagnostics);
  job.CheckReferences(spec);
  ReadScale(job.keys(), spec, source.diagnostics);
  job.keys().Finish();
  return spec;
}

// Every job of the tree says under which name its file is shown.
void NameFile(absl::string_view file_name, JobSpec& spec) {
  if (spec.file_name.empty()) spec.file_name = std::string(file_name);  // not of a component
  for (Step& step : spec.steps) NameFile(file_name, step.job);
}

}  // namespace

absl::StatusOr<ReadResult> ReadJobFile(absl::string_view text, absl::string_view file_name,
                                       const std::filesystem::path& base_directory,
                                       const Site& site, const ReadFileFunction& read_file) {
  TUTTI_ASSIGN_OR_RETURN(const auto root, ParseYaml(text, file_name));
  Diagnostics diagnostics(file_name);
  TUTTI_RETURN_IF_ERROR(CheckKind(*root, diagnostics));
  int files_left = kMostFiles;
  const ReadContext context{base_directory, site, read_file, files_left};
  const Source source{*root, text, context, diagnostics};
  const std::string type = TypeOf(*root, diagnostics);
  ReadResult result;
  result.spec = type == "pipeline" ? ReadPipelineJob(source)
                : type == "sweep"  ? ReadSweepJob(source)
                                   : ReadCommandJob(source);
  TUTTI_RETURN_IF_ERROR(diagnostics.status());
  NameFile(file_name, result.spec);
  result.warnings = diagnostics.warnings();
  return result;
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
  int files_left = kMostFiles;
  const ReadFileFunction read_file = ReadFromDisk;
  const ReadContext context{std::filesystem::absolute(file).parent_path(), site, read_file,
                            files_left};
  Environment environment = ReadWholeEnvironment(*root, context, diagnostics);
  TUTTI_RETURN_IF_ERROR(diagnostics.status());
  return environment;
}

}  // namespace tutti::spec
