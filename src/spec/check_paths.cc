// CheckPaths of job_file.h: what a job names on this machine's disk.
#include <algorithm>
#include <array>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/closest.h"
#include "spec/code.h"
#include "spec/data_map.h"
#include "spec/diagnostics.h"
#include "spec/job_file.h"

namespace tutti::spec {
namespace {
namespace fs = std::filesystem;

// Commands that make no files in the working folder: what follows them finds it as the code is.
constexpr std::array<absl::string_view, 12> kHarmless = {"pip",      "pip3", "echo", "export",
                                                         "set",      "ls",   "env",  "nvidia-smi",
                                                         "hostname", "date", "true", "pwd"};

bool IsInterpreter(absl::string_view word) {
  const absl::string_view name = word.substr(word.rfind('/') + 1);
  if (name == "bash" || name == "sh") return true;
  if (!absl::StartsWith(name, "python")) return false;
  return name.substr(6).find_first_not_of("0123456789.") == absl::string_view::npos;
}

// A plain relative path of a script; nothing that the shell would change.
bool IsScript(absl::string_view word) {
  return (absl::EndsWith(word, ".py") || absl::EndsWith(word, ".sh")) && word[0] != '/' &&
         word.find_first_of("$*?[]{}~`'\"\\<>|&()") == absl::string_view::npos;
}

// The script that one simple command runs, or "". `knows` turns false when the command may change
// what the folder holds.
absl::string_view ScriptOf(absl::string_view command, bool& knows) {
  std::vector<absl::string_view> words =
      absl::StrSplit(command, absl::ByAnyChar(" \t\n\r"), absl::SkipEmpty());
  const auto is_assignment = [](absl::string_view word) { return absl::StrContains(word, '='); };
  words.erase(words.begin(), std::find_if_not(words.begin(), words.end(), is_assignment));
  if (words.empty()) return "";
  if (absl::StartsWith(words[0], "./") && IsScript(words[0])) return words[0];
  if (!IsInterpreter(words[0])) {
    knows = std::find(kHarmless.begin(), kHarmless.end(), words[0]) != kHarmless.end();
    return "";
  }
  for (size_t i = 1; i < words.size(); ++i) {
    if (IsScript(words[i])) return words[i];
    if (words[i][0] != '-' || words[i] == "-m" || words[i] == "-c") break;
  }
  knows = words.size() > 1 && words[1] == "-m";  // python -m pip …
  return "";
}

// The first script that the command runs before anything could have made it; "" if none is sure.
std::string PlainScript(absl::string_view written) {
  const std::string command = absl::StrReplaceAll(written, {{"\\\n", " "}});
  bool knows = true;
  for (const absl::string_view part : absl::StrSplit(command, absl::ByAnyChar(";&|\n"))) {
    const absl::string_view script = ScriptOf(part, knows);
    if (!script.empty() || !knows) return std::string(script);
  }
  return "";
}

std::vector<std::string> ScriptsIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end;
       !error && entry != end && names.size() < 200; entry.increment(error)) {
    if (IsScript(entry->path().filename().string())) names.push_back(entry->path().filename());
  }
  return names;
}

// Whether it lies in what is put beside the code.
bool IsIncluded(const JobSpec& spec, const fs::path& script) {
  std::error_code error;
  const fs::path first = *script.lexically_normal().begin();
  return std::any_of(spec.additional_includes.begin(), spec.additional_includes.end(),
                     [&](const fs::path& include) {
                       return include.filename() == first &&
                              fs::exists(include.parent_path() / script, error);
                     });
}

void CheckScript(const JobSpec& spec, Diagnostics& diagnostics) {
  const std::string script = PlainScript(spec.command);
  if (script.empty() || IsIncluded(spec, script)) return;
  if (spec.code.empty()) {
    diagnostics.Error(spec.command_line,
                      absl::StrCat("the command runs \"", script,
                                   "\", but the job has no code; add \"code: .\" or the folder "
                                   "that holds it"));
    return;
  }
  std::error_code error;
  const bool is_folder = fs::is_directory(spec.code, error);
  const fs::path file = is_folder ? fs::path(spec.code) / std::string(script)
                                  : fs::path(spec.code).parent_path() / std::string(script);
  if (is_folder ? fs::exists(file, error) : file.lexically_normal() == spec.code) return;
  const std::vector<std::string> names = ScriptsIn(is_folder ? fs::path(spec.code) : fs::path());
  const std::vector<absl::string_view> candidates(names.begin(), names.end());
  diagnostics.Error(spec.command_line,
                    absl::StrCat("the command runs \"", script, "\", which is not in the code ",
                                 spec.code, base::DidYouMean(script, candidates)));
}

// What is wrong with the path of an input; "" if nothing is.
std::string FaultOf(const Input& input) {
  if (input.path.empty()) return "";     // a value, or an address that the program reads by itself
  if (IsAddress(input.path)) return "";  // its server is asked when the job is submitted
  std::error_code error;
  const fs::file_status status = fs::status(input.path, error);
  if (!input.job_folder.empty() && !fs::exists(input.job_folder, error)) {
    return absl::StrCat("there is no job \"", fs::path(input.job_folder).filename().string(),
                        "\" here; tutti job list shows those that there are");
  }
  if (!fs::exists(status)) return absl::StrCat(input.path, " does not exist");
  if (input.type == "uri_folder" && !fs::is_directory(status)) {
    return absl::StrCat(input.path, " is a file; its type is uri_file");
  }
  if (input.type == "uri_file" && fs::is_directory(status)) {
    return absl::StrCat(input.path, " is a folder; its type is uri_folder");
  }
  if (input.type == "mltable" && !fs::exists(fs::path(input.path) / "MLTable", error)) {
    return absl::StrCat(input.path, " holds no file MLTable; write one, or use uri_folder");
  }
  return "";
}

void CheckInput(const std::string& name, const Input& input, Diagnostics& diagnostics) {
  const std::string fault = FaultOf(input);
  if (fault.empty()) return;
  diagnostics.Error(input.place, absl::StrCat("input \"", name, "\": ", fault));
}

absl::Status CheckOne(const JobSpec& spec) {
  Diagnostics diagnostics(spec.file_name);
  std::error_code error;
  if (IsGitCode(spec.code)) {
    // What it holds is known once it has been fetched.
  } else if (!spec.code.empty() && !fs::exists(spec.code, error)) {
    diagnostics.Error(spec.code_line, absl::StrCat("code: ", spec.code, " does not exist"));
  } else {
    CheckScript(spec, diagnostics);
  }
  for (const std::string& include : spec.additional_includes) {
    if (fs::exists(include, error)) continue;
    diagnostics.Error(spec.includes_line,
                      absl::StrCat("additional_includes: ", include, " does not exist"));
  }
  for (const auto& [name, input] : spec.inputs) CheckInput(name, input, diagnostics);
  return diagnostics.status(absl::StatusCode::kNotFound);
}

void CheckTree(const JobSpec& spec, std::vector<std::string>& errors) {
  const absl::Status own = spec.kind == JobKind::kPipeline ? absl::OkStatus() : CheckOne(spec);
  if (!own.ok()) errors.emplace_back(own.message());
  for (const Step& step : spec.steps) CheckTree(step.job, errors);
}

}  // namespace

absl::Status CheckPaths(const JobSpec& spec) {
  std::vector<std::string> errors;
  CheckTree(spec, errors);
  if (errors.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrJoin(errors, "\n"));
}

}  // namespace tutti::spec
