#include "spec/command/command_reader.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/closest.h"
#include "spec/command/code.h"
#include "spec/data/asset.h"
#include "spec/data/local_path.h"
#include "spec/environment/job_environment.h"
#include "spec/text/expressions.h"
#include "spec/types/identifier.h"
#include "spec/types/process_variable.h"

namespace tutti::spec {
namespace {

// "azureml:NAME", "azureml:NAME@latest", "azureml:NAME:1" and the compute's id all name NAME.
std::string ReferredName(absl::string_view reference) {
  std::string name = NameOfId(reference);
  if (!absl::StartsWith(name, "azureml:")) return name;
  name.erase(0, 8);
  return name.substr(0, name.find_first_of("@:"));
}

// Says what is wrong with an expression; in a sweep, that its search_space has no such parameter.
std::string FaultOf(const ExpressionError& error, const JobSpec& spec) {
  absl::string_view name = error.expression;
  const size_t begin = name.find("search_space.");
  if (!spec.sweep || begin == absl::string_view::npos) return error.message;
  name.remove_prefix(begin + absl::string_view("search_space.").size());
  name = absl::StripAsciiWhitespace(name.substr(0, std::min<size_t>(name.find('}'), 80)));
  std::vector<absl::string_view> names;
  for (const SearchParameter& parameter : spec.sweep->parameters) names.push_back(parameter.name);
  return absl::StrCat(error.expression.substr(0, 120), ": search_space has no parameter \"", name,
                      "\"", base::DidYouMean(name, names));
}

// Returns what is certain of an environment that was refused: its image and the files copied into
// it have passed their checks.
Environment Certain(Environment refused) {
  Environment certain;
  certain.is_host = false;
  certain.image = std::move(refused.image);
  certain.copied = std::move(refused.copied);
  return certain;
}

}  // namespace

void CommandReader::ReadIdentity(JobSpec& spec) {
  if (const auto* entry = keys_.Text("name", spec.name); entry && !IsJobName(spec.name)) {
    source_.diagnostics.Error(entry->line,
                              "name must be of letters, digits, \"-\" and \"_\", must begin with a "
                              "letter or digit, and has at most 128 characters");
    spec.name.clear();
  }
  keys_.Text("display_name", spec.display_name);
  spec.experiment_name = source_.context.base.filename().string();  // as Azure ML does
  keys_.Text("experiment_name", spec.experiment_name);
  keys_.Text("description", spec.description);
  keys_.TextMap("tags", spec.tags);
}

void CommandReader::ReadComponentIdentity(JobSpec& spec) {
  std::string unused;
  for (const char* key : {"$schema", "type", "name", "version", "display_name"}) {
    keys_.Text(key, unused);
  }
  keys_.Text("description", spec.description);
  keys_.TextMap("tags", spec.tags);
  keys_.Flag("is_deterministic", spec.reusable);
}

void CommandReader::ReadCommand(JobSpec& spec) {
  keys_.Text("command", spec.command);
  const YamlNode::Entry* entry = Find("command");
  if (entry == nullptr) {
    source_.diagnostics.Error(source_.root.line,
                              "the key \"command\" is missing: say what each process runs");
    return;
  }
  spec.command_line = entry->line;
  const bool is_text = entry->value->items.empty() && entry->value->entries.empty();
  if (is_text && absl::StripAsciiWhitespace(spec.command).empty()) {
    source_.diagnostics.Error(entry->line, "command is empty: say what each process runs");
  }
}

void CommandReader::ReadVariables(JobSpec& spec) {
  const ErrorWatch refused(source_.diagnostics);
  keys_.TextMap("environment_variables", spec.environment_variables);
  if (const YamlNode::Entry* written = Find("environment_variables")) {
    for (const YamlNode::Entry& entry : written->value->entries) {
      spec.variable_locations[entry.key] = {source_.diagnostics.file_name(), entry.line};
    }
  }
  CheckEnvironmentVariables(spec);
  spec.command_in_doubt |= refused.any();
}

void CommandReader::CheckEnvironmentVariables(const JobSpec& spec) {
  const int line = LineOfKey("environment_variables");
  for (const auto& [name, value] : spec.environment_variables) {
    if (!IsIdentifier(name)) {
      source_.diagnostics.Error(line, absl::StrCat("environment variable \"", name.substr(0, 80),
                                                   "\" must be of letters, digits and \"_\""));
    }
    if (const std::string why = WhyTooLong(name, value); !why.empty()) {
      source_.diagnostics.Error(
          line, absl::StrCat("environment variable \"", name.substr(0, 80), "\" ", why));
    }
  }
}

void CommandReader::ReadCode(JobSpec& spec) {
  std::string code;
  const ErrorWatch refused(source_.diagnostics);
  const YamlNode::Entry* entry = keys_.Text("code", code);
  if (entry == nullptr) {
    spec.command_in_doubt |= refused.any();
    return;
  }
  spec.code_line = entry->line;
  if (IsRemoteCode(code)) {
    const absl::Status address =
        IsGitCode(code) ? ParseGitCode(code).status() : CheckCodeInStore(code);
    if (!address.ok()) {
      source_.diagnostics.Error(entry->line, absl::StrCat("code: ", address.message()));
    }
    spec.code = code;  // of which nothing is checked here
  } else if (const auto path = LocalPath(code, source_.context.base); path.ok()) {
    spec.code = *path;
  } else {
    source_.diagnostics.Error(entry->line, absl::StrCat("code: ", path.status().message()));
    spec.command_in_doubt = true;
  }
}

void CommandReader::ReadIncludes(JobSpec& spec) {
  std::vector<std::string> written;
  const ErrorWatch refused(source_.diagnostics);
  const YamlNode::Entry* entry = keys_.Texts("additional_includes", written);
  if (entry != nullptr) spec.includes_line = entry->line;
  for (const std::string& include : written) {
    const auto path = LocalPath(include, source_.context.base);
    if (path.ok()) {
      spec.additional_includes.push_back(*path);
    } else {
      source_.diagnostics.Error(entry->line,
                                absl::StrCat("additional_includes: ", path.status().message()));
    }
  }
  spec.command_in_doubt |= refused.any();
}

void CommandReader::ReadEnvironmentKey(JobSpec& spec) {
  const YamlNode::Entry* entry = keys_.Take("environment");
  if (entry == nullptr) return;
  const ErrorWatch refused(source_.diagnostics);
  Environment environment = ReadEnvironment(*entry, source_.context, source_.diagnostics);
  spec.environment_location = {source_.diagnostics.file_name(), entry->line};
  spec.environment = refused.any() ? Certain(std::move(environment)) : std::move(environment);
}

void CommandReader::ReadCompute(absl::string_view key, JobSpec& spec) {
  const ErrorWatch refused(source_.diagnostics);
  TakeCompute(key, spec);
  if (refused.any()) spec.compute.clear();
}

void CommandReader::TakeCompute(absl::string_view key, JobSpec& spec) {
  std::string written;
  const YamlNode::Entry* entry = keys_.Text(key, written);
  if (entry == nullptr) return;
  const std::string name = ReferredName(written);
  const auto& computes = source_.context.site.computes;
  const auto known = computes.find(absl::AsciiStrToLower(name));
  if (name == "local" || name == "serverless" || name.empty()) {
    spec.compute = "local";
  } else if (source_.context.site.compute_files.contains(absl::AsciiStrToLower(name))) {
    spec.compute = absl::AsciiStrToLower(name);  // ReadJobFile says what it stands for
  } else if (known != computes.end()) {
    spec.compute = known->second;
  } else if (!WholeExpression(written).empty()) {
    source_.diagnostics.Error(entry->line,
                              absl::StrCat(key, " is ", written,
                                           ", which must be an input of the pipeline that has a "
                                           "plain value"));
  } else {
    source_.diagnostics.Error(
        entry->line, absl::StrCat("compute \"", written.substr(0, 80),
                                  "\" does not exist; write \"local\", this machine's virtual "
                                  "nodes, or say that the name means them, in site.yml: "
                                  "computes: {",
                                  name,
                                  ": local}, or by its file: tutti compute "
                                  "create --file FILE"));
  }
}

void CommandReader::CheckReferences(const JobSpec& spec) {
  for (const ExpressionError& error : CheckExpressions(spec.command, spec.inputs, spec.outputs)) {
    source_.diagnostics.Error(LineOfText(spec, error.expression), FaultOf(error, spec));
  }
  for (const ExpressionError& near : NearExpressions(spec.command, spec.inputs, spec.outputs)) {
    source_.diagnostics.Warning(LineOfText(spec, near.expression), near.message);
  }
  for (const auto& [name, value] : spec.environment_variables) {
    for (const ExpressionError& error : CheckExpressions(value, spec.inputs, spec.outputs)) {
      source_.diagnostics.Error(LineOfKey("environment_variables"),
                                absl::StrCat("environment variable \"", name.substr(0, 80),
                                             "\": ", FaultOf(error, spec)));
    }
  }
}

void CommandReader::Finish(JobSpec& spec) {
  for (const std::string& meant : keys_.Finish()) {
    if (meant.empty() || Find(meant) == nullptr) Doubt(meant, spec);
  }
}

// `key` is absent, unless an unknown one was meant as it. "": it may be one of which the name says
// nothing here; then the command may need it.
void CommandReader::Doubt(absl::string_view key, JobSpec& spec) {
  if (key == "compute" || key == "settings") {
    spec.compute.clear();  // settings: default_compute
  } else if (key == "environment") {
    spec.environment = Certain({});
  } else if (key.empty() || key == "code" || key == "additional_includes" ||
             key == "environment_variables") {
    spec.command_in_doubt = true;
  }
}

const YamlNode::Entry* CommandReader::Find(absl::string_view key) const {
  return FindEntry(source_.root, key);
}

int CommandReader::LineOfKey(absl::string_view key) const {
  const YamlNode::Entry* entry = Find(key);
  return entry == nullptr ? source_.root.line : entry->line;
}

// Where a part of the command stands: YAML's folding has lost it, so it is looked up in the text.
int CommandReader::LineOfText(const JobSpec& spec, absl::string_view part) const {
  size_t begin = 0;
  for (int line = 1; line < spec.command_line; ++line) {
    begin = source_.text.find('\n', begin) + 1;
    if (begin == 0) return spec.command_line;
  }
  const size_t found = source_.text.find(part, begin);
  if (found == absl::string_view::npos) return spec.command_line;
  return spec.command_line + static_cast<int>(std::count(source_.text.begin() + begin,
                                                         source_.text.begin() + found, '\n'));
}

}  // namespace tutti::spec
