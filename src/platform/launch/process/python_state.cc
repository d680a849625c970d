#include "platform/launch/process/python_state.h"

#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"

namespace tutti::launch {
namespace {

constexpr uint64_t kInterrupt = uint64_t{1} << (SIGINT - 1);
constexpr uint64_t kLongestStatus = 64 << 10;

bool IsPython(pid_t pid) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink(absl::StrCat("/proc/", pid, "/exe"), error);
  return !error && absl::StartsWith(program.filename().string(), "python");
}

// Whether SIGINT is in the set of signals of that name.
bool HasInterrupt(absl::string_view status, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    uint64_t set = 0;
    if (!absl::ConsumePrefix(&line, name)) continue;
    return absl::SimpleHexAtoi(absl::StripAsciiWhitespace(line), &set) && (set & kInterrupt) != 0;
  }
  return false;
}

}  // namespace

PythonState PythonStateIn(absl::string_view status) {
  if (HasInterrupt(status, "SigCgt:")) return PythonState::kRuns;
  const bool tells = absl::StrContains(status, "SigCgt:") && !HasInterrupt(status, "SigIgn:");
  return tells ? PythonState::kEnded : PythonState::kUnknown;
}

PythonState PythonStateOf(const std::vector<pid_t>& processes) {
  PythonState found = PythonState::kUnknown;
  for (const pid_t pid : processes) {
    if (!IsPython(pid)) continue;
    const auto status = base::ReadFile(absl::StrCat("/proc/", pid, "/status"), kLongestStatus);
    const PythonState state = PythonStateIn(status.value_or(""));
    if (state == PythonState::kEnded) return state;
    if (state == PythonState::kRuns) found = state;
  }
  return found;
}

}  // namespace tutti::launch
