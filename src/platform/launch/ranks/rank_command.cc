#include "platform/launch/ranks/rank_command.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/machine/machine.h"
#include "spec/command/first_program.h"

namespace tutti::launch {
namespace {

std::string Shell() { return ::access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh"; }

// Bash reads these variables before the command: functions and options.
bool TellsTheShell(const Variables& environment) {
  return std::any_of(environment.begin(), environment.end(), [](const auto& variable) {
    return absl::StartsWith(variable.first, "BASH_") || variable.first == "SHELLOPTS" ||
           variable.first == "BASHOPTS" || variable.first == "POSIXLY_CORRECT";
  });
}

// What only looks like a program is the shell's to explain, or to run.
bool IsProgram(const std::string& path) {
  const absl::StatusOr<base::UniqueFd> file = base::Open(path, O_RDONLY);
  if (!file.ok() || ::access(path.c_str(), X_OK) != 0) return false;
  struct stat status;
  if (::fstat(file->get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  char start[4] = {};
  const ssize_t n = ::pread(file->get(), start, sizeof start, 0);
  const absl::string_view head(start, static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return head == "\177ELF" || absl::StartsWith(head, "#!");
}

// Where the shell would find it; empty if only the shell can tell.
std::string PathOfProgram(const std::string& name, const Variables& environment) {
  const auto path = environment.find("PATH");
  const bool is_relative = absl::StrContains(name, '/') && !absl::StartsWith(name, "/");
  if (path == environment.end() || is_relative) return "";
  for (const absl::string_view folder : absl::StrSplit(path->second, ':')) {
    if (!absl::StartsWith(folder, "/")) return "";
  }
  return base::FindProgram(name, {{"PATH", path->second}}).value_or("");
}

// As bash leaves it to a program that it becomes.
void AddWhatBashAdds(const std::string& program, const std::filesystem::path& work,
                     Variables& environment) {
  int level = 0;
  const auto given = environment.find("SHLVL");
  if (given != environment.end() && !absl::SimpleAtoi(given->second, &level)) level = 0;
  environment["SHLVL"] = absl::StrCat(std::max(level, 0));
  environment["PWD"] = work.string();
  environment["_"] = program;
}

}  // namespace

RankCommand RankCommandOf(const std::string& command, Variables environment,
                          const std::filesystem::path& work) {
  std::vector<std::string> words = spec::PlainWordsOf(command);
  if (!words.empty() && !TellsTheShell(environment)) {
    const std::string program = PathOfProgram(words[0], environment);
    if (!program.empty() && IsProgram(program)) {
      AddWhatBashAdds(program, work, environment);
      return {std::move(words), std::move(environment)};
    }
  }
  return {{Shell(), "-c", command}, std::move(environment)};
}

}  // namespace tutti::launch
