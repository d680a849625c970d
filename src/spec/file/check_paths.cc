// CheckPaths of job_file.h: what a job names on this machine's disk.
#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/deadline.h"
#include "base/machine/pattern_walk.h"
#include "base/text/closest.h"
#include "spec/command/code.h"
#include "spec/command/read_only_writes.h"
#include "spec/data/data_map.h"
#include "spec/file/job_file.h"
#include "spec/file/plain_script.h"
#include "spec/text/diagnostics.h"

namespace tutti::spec {
namespace {
namespace fs = std::filesystem;

// " does not exist" and the like; "" if it is there. What may not be asked is not called absent.
std::string AbsenceOf(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status)) return "";
  if (status.type() == fs::file_type::not_found) return " does not exist";
  return absl::StrCat(" cannot be read: ", error.message());
}

// Whether a file matches the input's pattern, or its folder is too large to say so while somebody
// waits.
bool MayMatch(const Input& input) {
  const base::Deadline enough = base::Deadline::After(absl::Seconds(1));
  const absl::Status walk = base::WalkPattern(
      input.path, input.pattern, WildcardsOf(input), [&] { return !enough.Expired(); },
      [](const fs::path&) { return absl::AlreadyExistsError("one is enough"); });
  return !walk.ok();
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
  const auto [script, decides] = PlainScriptOf(spec.command);
  if (script.empty() || IsIncluded(spec, script)) return;
  const auto tell = [&, is_error = decides](absl::string_view message) {
    is_error ? diagnostics.Error(spec.command_line, message)
             : diagnostics.Warning(spec.command_line, message);
  };
  if (spec.code.empty()) {
    tell(absl::StrCat("the command runs \"", script,
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
  tell(absl::StrCat("the command runs \"", script, "\", which is not in the code ", spec.code,
                    base::DidYouMean(script, candidates)));
}

void CheckInput(const std::string& name, const Input& input, Diagnostics& diagnostics) {
  const std::string fault = PathFault(input);
  if (fault.empty()) return;
  diagnostics.Error(input.location, absl::StrCat("input \"", name, "\": ", fault));
}

// Checks that what a Dockerfile copies is in its folder.
void CheckCopied(const CopiedFile& copied, Diagnostics& diagnostics) {
  const bool is_elsewhere = absl::StrContains(copied.path, "://") ||
                            absl::StartsWith(copied.path, "git@") ||
                            absl::StrContains(copied.path, '$');
  if (is_elsewhere) return;
  const fs::path folder = fs::path(copied.folder).lexically_normal();
  const fs::path path = (folder / fs::path(copied.path).relative_path()).lexically_normal();
  const auto tell = [&](absl::string_view why) {
    diagnostics.Error(copied.location, absl::StrCat(copied.word, " ", copied.path.substr(0, 200),
                                                    ": ", path.string().substr(0, 400), why));
  };
  const fs::path relative = path.lexically_relative(folder);
  if (!relative.empty() && *relative.begin() == "..") {
    return tell(absl::StrCat(" is outside of the build's folder ", folder.string()));
  }
  if (copied.path.find_first_of("*?[") == std::string::npos) {
    if (const std::string absence = AbsenceOf(path); !absence.empty()) tell(absence);
    return;
  }
  glob_t found{};
  const int result = glob(path.c_str(), GLOB_NOSORT | GLOB_PERIOD, nullptr, &found);
  globfree(&found);
  if (result == GLOB_NOMATCH) tell(" matches no file");
}

// Adds a line unless it is there: a fault that several steps share is told once.
void AddNew(absl::string_view line, std::vector<std::string>& lines) {
  if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.emplace_back(line);
}

void CheckCode(const JobSpec& spec, Diagnostics& diagnostics) {
  const bool is_remote = IsRemoteCode(spec.code);
  const std::string absence = spec.code.empty() || is_remote ? "" : AbsenceOf(spec.code);
  if (!absence.empty()) {
    diagnostics.Error(spec.code_line, absl::StrCat("code: ", spec.code, absence));
  } else if (!is_remote) {  // what that holds is known once it has been fetched
    CheckScript(spec, diagnostics);
  }
  for (const std::string& include : spec.additional_includes) {
    const std::string absent = AbsenceOf(include);
    if (absent.empty()) continue;
    diagnostics.Error(spec.includes_line, absl::StrCat("additional_includes: ", include, absent));
  }
}

absl::Status CheckOne(const JobSpec& spec, const std::set<std::string>& sent,
                      std::vector<std::string>& warnings) {
  Diagnostics diagnostics(spec.file_name);
  if (!sent.contains(spec.AllCode())) CheckCode(spec, diagnostics);
  for (const CopiedFile& copied : spec.environment.copied) CheckCopied(copied, diagnostics);
  for (const auto& [name, input] : spec.inputs) CheckInput(name, input, diagnostics);
  for (const ReadOnlyWrite& write : WritesToReadOnly(spec)) {
    write.location.line > 0 ? diagnostics.Warning(write.location, write.message)
                            : diagnostics.Warning(spec.command_line, write.message);
  }
  for (const std::string& warning : diagnostics.warnings()) AddNew(warning, warnings);
  return diagnostics.status(absl::StatusCode::kNotFound);
}

void CheckTree(const JobSpec& spec, const std::set<std::string>& sent,
               std::vector<std::string>& errors, std::vector<std::string>& warnings) {
  const bool runs = spec.kind != JobKind::kPipeline;
  const absl::Status own = runs ? CheckOne(spec, sent, warnings) : absl::OkStatus();
  if (!own.ok()) {
    for (const absl::string_view line : absl::StrSplit(own.message(), '\n')) AddNew(line, errors);
  }
  for (const Step& step : spec.steps) CheckTree(step.job, sent, errors, warnings);
}

}  // namespace

std::string PathFault(const Input& input) {
  if (input.path.empty()) return "";     // a value, or an address that the program reads by itself
  if (IsAddress(input.path)) return "";  // its server is asked when the job is submitted
  std::error_code error;
  const fs::file_status status = fs::status(input.path, error);
  const std::string absence = AbsenceOf(input.path);
  if (!input.job_folder.empty() &&
      fs::status(input.job_folder, error).type() == fs::file_type::not_found) {
    return absl::StrCat("there is no job \"", fs::path(input.job_folder).filename().string(),
                        "\" here; tutti job list shows those that there are");
  }
  if (!absence.empty()) return absl::StrCat(input.path, absence);
  const bool is_of_table = !input.table.empty();
  if (input.type == "uri_folder" && !fs::is_directory(status)) {
    return absl::StrCat(input.path, " is a file; its ",
                        is_of_table ? "table is to say file:" : "type is uri_file");
  }
  if (input.type == "uri_file" && fs::is_directory(status)) {
    return absl::StrCat(input.path, " is a folder; its ",
                        is_of_table ? "table is to say folder:" : "type is uri_folder");
  }
  if (!input.pattern.empty() && !is_of_table && !MayMatch(input)) {
    return absl::StrCat("no file of ", input.path, " matches ", input.pattern);
  }
  if (input.type == "mltable" && !fs::exists(fs::path(input.path) / "MLTable", error)) {
    return absl::StrCat(input.path, " holds no file MLTable; write one, or use uri_folder");
  }
  return "";
}

absl::Status CheckPaths(const JobSpec& spec, std::vector<std::string>& warnings,
                        const std::set<std::string>& sent) {
  std::vector<std::string> errors;
  CheckTree(spec, sent, errors, warnings);
  if (errors.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrJoin(errors, "\n"));
}

}  // namespace tutti::spec
