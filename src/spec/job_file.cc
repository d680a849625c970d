#include "spec/job_file.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/closest.h"
#include "base/status.h"
#include "spec/expressions.h"
#include "spec/job_data.h"
#include "spec/job_scale.h"
#include "spec/mapping_reader.h"

namespace tutti::spec {
namespace {

constexpr std::array<absl::string_view, 1> kJobTypes = {"command"};

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
                const std::filesystem::path& base, const YamlNode& root)
      : text_(text),
        base_(base),
        root_(root),
        diagnostics_(file_name),
        job_(root, "a job file", diagnostics_) {
    spec_.file_name = std::string(file_name);
  }

  absl::StatusOr<ReadResult> Read() {
    ReadIdentity();
    ReadCommand();
    ReadPlace();
    spec_.inputs = ReadInputs(job_, base_, diagnostics_);
    spec_.outputs = ReadOutputs(job_, diagnostics_);
    CheckReferences();
    ReadScale(job_, spec_, diagnostics_);
    job_.WarnOf("properties", "no one reads them here");
    job_.WarnOf("services", "ports of a job are not published here");
    job_.WarnOf("identity", "jobs run as the user of the service");
    job_.Finish();
    TUTTI_RETURN_IF_ERROR(diagnostics_.status());
    return ReadResult{std::move(spec_), diagnostics_.warnings()};
  }

 private:
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
    spec_.experiment_name = base_.filename().string();  // as Azure ML does
    job_.Text("experiment_name", spec_.experiment_name);
    job_.Text("description", spec_.description);
    job_.TextMap("tags", spec_.tags);
  }

  void ReadType() {
    std::string type = "command";
    const YamlNode::Entry* entry = job_.Text("type", type);
    if (type == "command" || entry == nullptr) return;
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
      } else if (absl::StrContains(value, "${{")) {
        diagnostics_.Warning(line, absl::StrCat("environment variable \"", name,
                                                "\" contains ${{…}}, which is expanded in command "
                                                "only"));
      }
    }
  }

  // Where it runs: code, environment, compute.
  void ReadPlace() {
    std::string code;
    if (const YamlNode::Entry* entry = job_.Text("code", code); entry != nullptr) {
      spec_.code_line = entry->line;
      const auto path = LocalPath(code, base_);
      if (path.ok()) {
        spec_.code = *path;
      } else {
        diagnostics_.Error(entry->line, absl::StrCat("code: ", path.status().message()));
      }
    }
    ReadEnvironment();
    spec_.compute = "local";
    if (const YamlNode::Entry* entry = job_.Text("compute", spec_.compute); entry != nullptr) {
      const std::string name(ReferredName(spec_.compute));
      if (name != "local") {
        diagnostics_.Error(entry->line, absl::StrCat("compute \"", spec_.compute.substr(0, 80),
                                                     "\" does not exist: this version runs jobs on "
                                                     "\"local\", this machine's virtual nodes"));
      }
      spec_.compute = name;
    }
  }

  void ReadEnvironment() {
    spec_.environment = "host";
    const YamlNode::Entry* entry = job_.Take("environment");
    if (entry == nullptr) return;
    const std::string& name = entry->value->scalar;
    if (entry->value->kind == YamlNode::Kind::kScalar && ReferredName(name) == "host") return;
    const std::string shown = entry->value->kind == YamlNode::Kind::kScalar
                                  ? absl::StrCat("environment \"", name.substr(0, 80), "\"")
                                  : "an environment defined in the job file";
    diagnostics_.Error(entry->line, absl::StrCat(shown,
                                                 " is not supported: this version runs jobs in the "
                                                 "host's own environment; write \"environment: "
                                                 "host\" or leave it out"));
  }

  // Each ${{…}} of the command names something that the job has.
  void CheckReferences() {
    for (const ExpressionError& error :
         CheckExpressions(spec_.command, spec_.inputs, spec_.outputs)) {
      diagnostics_.Error(LineOfText(error.expression), error.message);
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
  const std::filesystem::path& base_;
  const YamlNode& root_;
  Diagnostics diagnostics_;
  MappingReader job_;
  JobSpec spec_;
};

}  // namespace

absl::StatusOr<ReadResult> ReadJobFile(absl::string_view text, absl::string_view file_name,
                                       const std::filesystem::path& base_directory) {
  TUTTI_ASSIGN_OR_RETURN(const auto root, ParseYaml(text, file_name));
  return JobFileReader(text, file_name, base_directory, *root).Read();
}

}  // namespace tutti::spec
