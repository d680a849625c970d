#include "platform/launch/world_check.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/child_process.h"
#include "base/file.h"

namespace tutti::launch {
namespace {

constexpr uint64_t kLargest = 64 << 20;

}  // namespace

std::string OpenMpiIn(absl::string_view maps) {
  if (!absl::StrContains(maps, "/libmpi.so.40")) return "";  // of all versions from 2 to 5
  for (const absl::string_view line : absl::StrSplit(maps, '\n')) {
    const size_t path = line.find('/');
    if (path != line.npos && absl::StrContains(line, "/libmpi.so.40")) {
      return std::string(line.substr(path));
    }
  }
  return "";
}

bool HasWorld(absl::string_view environment) {
  for (const absl::string_view variable : absl::StrSplit(environment, '\0')) {
    if (absl::StartsWith(variable, "PMIX_NAMESPACE=")) return true;
  }
  return false;
}

std::string OpenMpiLoadedBelow(pid_t pid) {
  std::vector<pid_t> processes = base::Descendants(pid);
  processes.push_back(pid);
  for (const pid_t each : processes) {
    const std::string folder = absl::StrCat("/proc/", each);
    const auto maps = base::ReadFile(folder + "/maps", kLargest);
    const std::string found = OpenMpiIn(maps.value_or(""));
    if (found.empty()) continue;
    if (!HasWorld(base::ReadFile(folder + "/environ", kLargest).value_or(""))) return found;
  }
  return "";
}

}  // namespace tutti::launch
