#include "spec/job_file.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/closest.h"
#include "base/file.h"
#include "base/status.h"
#include "spec/azure_keys.h"
#include "spec/code.h"
#include "spec/expressions.h"
#include "spec/job_data.h"
#include "spec/job_environment.h"
#include "spec/job_scale.h"
#include "spec/mapping_reader.h"
#include "spec/read_context.h"

namespace tutti::spec {
namespace {

constexpr std::array<absl::string_view, 1> kJobTypes = {"command"};
constexpr int kMostFiles = 32;  // that a job file and those it names bring in
constexpr uint64_t kLargestFile = 1 << 20;

// The name becomes an id, part of addresses and a folder.
bool IsJobName(absl::string_view name) {
  return name.size() <= 128 && !name.empty() && absl::ascii_isalnum(name[0]) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '_' || c == '-';
         });
}

// "azureml:NAME", "azureml:NAME@latest" and "azureml:NAME:1" all name NAME.
absl::string_view ReferredName(absl::string_view reference) {
  if (!absl::StartsWith(reference, "azureml:")) return reference;
  reference.remove_prefix(8);
  return reference.substr(0, reference.find_first_of("@:"));
}

class JobFileReader {
 public:
  JobFileReader(absl::string_view text, absl::string_view file_name,
                const std::filesystem::path& base, const Site& site,
                const ReadFileFunction& read_file, const YamlNode& root)
      : text_(text),
        context_{base, site, read_file, files_left_},
        root_(root),
        diagnostics_(file_name),
        job_(root, "a job file", diagnostics_, {"command", ""}) {
    spec_.file_name = std::string(file_name);
  }

  absl::StatusOr<ReadResult> Read() {
    if (absl::Status other = CheckKind(); !other.ok()) return other;
    ReadIdentity();
    ReadCommand();
    ReadPlace();
    spec_.inputs = ReadInputs(job_, context_, diagnostics_);
    spec_.outputs = ReadOutputs(job_, diagnostics_);
    CheckReferences();
    ReadScale(job_, spec_, diagnostics_);
    job_.Finish();
    TUTTI_RETURN_IF_ERROR(diagnostics_.status());
    return ReadResult{std::move(spec_), diagnostics_.warnings()};
  }

 private:
  // Files of other kinds are told apart at once: all else would be said of the wrong one.
  absl::Status CheckKind() {
    static constexpr struct {
      absl::string_view schema, kind;
    } kOthers[] = {{"pipelinejob.", "pipeline"},
                   {"pipelinecomponent.", "component"},
                   {"commandcomponent.", "component"},
                   {"sweepjob.", "sweep"},
                   {"environment.", "environment"},
                   {"data.", "data"},
                   {"compute", "compute"}};
    const YamlNode::Entry* entry = Find("$schema");
    if (entry == nullptr) return absl::OkStatus();
    const std::string schema = absl::AsciiStrToLower(entry->value->scalar);
    const std::string name = schema.substr(schema.rfind('/') + 1);
    for (const auto& [other, kind] : kOthers) {
      if (!absl::StartsWith(name, other) && !(kind == "compute" && absl::StrContains(name, kind))) {
        continue;
      }
      diagnostics_.Error(entry->line,
                         absl::StrCat("this is a file of kind ", kind, ": ",
                                      FindAzureKey(kind, "$schema")->outcome == KeyOutcome::kRefused
                                          ? FindAzureKey(kind, "$schema")->note
                                          : "name it in a job file as environment: "
                                            "file:PATH"));
      return diagnostics_.status();
    }
    return absl::OkStatus();
  }

  void ReadIdentity() {
    std::string schema;
    job_.Text("$schema", schema);
    ReadType();
    if (const auto* entry = job_.Text("name", spec_.name); entry && !IsJobName(spec_.name)) {
      diagnostics_.Error(entry->line,
                         "name must be of letters, digits, \"-\" and \"_\", must begin with a "
                         "letter or digit, and has at most 128 characters");
    }
    job_.Text("display_name", spec_.display_name);
    spec_.experiment_name = context_.base.filename().string();  // as Azure ML does
    job_.Text("experiment_name", spec_.experiment_name);
    job_.Text("description", spec_.description);
    job_.TextMap("tags", spec_.tags);
  }

  void ReadType() {
    std::string type = "command";
    const YamlNode::Entry* entry = job_.Text("type", type);
    if (type == "command" || entry == nullptr) return;
    if (const AzureKey* other = FindAzureKey(type, "type")) {
      diagnostics_.Error(entry->line, absl::StrCat("job type \"", type, "\": ", other->note));
      return;
    }
    diagnostics_.Error(entry->line, absl::StrCat("job type \"", type.substr(0, 80),
                                                 "\" is not supported: this version runs jobs of "
                                                 "type command",
                                                 base::DidYouMean(type.substr(0, 80), kJobTypes)));
  }

  void ReadCommand() {
    job_.Text("command", spec_.command);
    if (const YamlNode::Entry* entry = Find("command"); entry == nullptr) {
      diagnostics_.Error(root_.line, "the key \"command\" is missing: say what each process runs");
    } else {
      spec_.command_line = entry->line;
      const bool is_text = entry->value->items.empty() && entry->value->entries.empty();
      if (is_text && absl::StripAsciiWhitespace(spec_.command).empty()) {
        diagnostics_.Error(entry->line, "command is empty: say what each process runs");
      }
    }
    job_.TextMap("environment_variables", spec_.environment_variables);
    CheckEnvironmentVariables();
  }

  void CheckEnvironmentVariables() {
    const int line = LineOfKey("environment_variables");
    for (const auto& [name, value] : spec_.environment_variables) {
      if (!IsIdentifier(name)) {
        diagnostics_.Error(line, absl::StrCat("environment variable \"", name.substr(0, 80),
                                              "\" must be of letters, digits and \"_\""));
      }
    }
  }

  // Where it runs: code, environment, compute.
  void ReadPlace() {
    ReadCode();
    if (const YamlNode::Entry* entry = job_.Take("environment")) {
      spec_.environment = ReadEnvironment(*entry, context_, diagnostics_);
    }
    ReadCompute();
  }

  void ReadCode() {
    std::string code;
    const YamlNode::Entry* entry = job_.Text("code", code);
    if (entry == nullptr) return;
    spec_.code_line = entry->line;
    if (IsGitCode(code)) {
      const auto git = ParseGitCode(code);
      if (!git.ok())
        diagnostics_.Error(entry->line, absl::StrCat("code: ", git.status().message()));
      spec_.code = code;
    } else if (const auto path = LocalPath(code, context_.base); path.ok()) {
      spec_.code = *path;
    } else {
      diagnostics_.Error(entry->line, absl::StrCat("code: ", path.status().message()));
    }
  }

  void ReadCompute() {
    spec_.compute = "local";
    const YamlNode::Entry* entry = job_.Text("compute", spec_.compute);
    if (entry == nullptr) return;
    const std::string name(ReferredName(spec_.compute));
    const auto& computes = context_.site.computes;
    const auto known = computes.find(absl::AsciiStrToLower(name));
    if (name == "local" || name == "serverless" || name.empty()) {
      spec_.compute = "local";
    } else if (known != computes.end()) {
      spec_.compute = known->second;
    } else {
      diagnostics_.Error(entry->line,
                         absl::StrCat("compute \"", spec_.compute.substr(0, 80),
                                      "\" does not exist; write \"local\", this machine's virtual "
                                      "nodes, or say in site.yml that the name means them: "
                                      "computes: {",
                                      name.substr(0, 80), ": local}"));
    }
  }

  // Each ${{…}} of the command and the variables names something that the job has.
  void CheckReferences() {
    for (const ExpressionError& error :
         CheckExpressions(spec_.command, spec_.inputs, spec_.outputs)) {
      diagnostics_.Error(LineOfText(error.expression), error.message);
    }
    for (const auto& [name, value] : spec_.environment_variables) {
      for (const ExpressionError& error : CheckExpressions(value, spec_.inputs, spec_.outputs)) {
        diagnostics_.Error(
            LineOfKey("environment_variables"),
            absl::StrCat("environment variable \"", name.substr(0, 80), "\": ", error.message));
      }
    }
  }

  const YamlNode::Entry* Find(absl::string_view key) const {
    for (const YamlNode::Entry& entry : root_.entries) {
      if (entry.key == key) return &entry;
    }
    return nullptr;
  }
  int LineOfKey(absl::string_view key) const {
    const YamlNode::Entry* entry = Find(key);
    return entry == nullptr ? root_.line : entry->line;
  }

  // Where a part of the command stands: YAML's folding has lost it, so it is looked up in the text.
  int LineOfText(absl::string_view part) const {
    size_t begin = 0;
    for (int line = 1; line < spec_.command_line; ++line) begin = text_.find('\n', begin) + 1;
    const size_t found = text_.find(part, begin);
    if (found == absl::string_view::npos) return spec_.command_line;
    return spec_.command_line +
           static_cast<int>(std::count(text_.begin() + begin, text_.begin() + found, '\n'));
  }

  const absl::string_view text_;
  int files_left_ = kMostFiles;
  const ReadContext context_;
  const YamlNode& root_;
  Diagnostics diagnostics_;
  MappingReader job_;
  JobSpec spec_;
};

}  // namespace

absl::StatusOr<ReadResult> ReadJobFile(absl::string_view text, absl::string_view file_name,
                                       const std::filesystem::path& base_directory,
                                       const Site& site, const ReadFileFunction& read_file) {
  TUTTI_ASSIGN_OR_RETURN(const auto root, ParseYaml(text, file_name));
  return JobFileReader(text, file_name, base_directory, site, read_file, *root).Read();
}

absl::StatusOr<ReadResult> ReadJobFile(absl::string_view text, absl::string_view file_name,
                                       const std::filesystem::path& base_directory,
                                       const Site& site) {
  return ReadJobFile(text, file_name, base_directory, site, [](const std::filesystem::path& file) {
    return base::ReadFile(file, kLargestFile);
  });
}

}  // namespace tutti::spec
