#include "base/machine/free_memory.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::base {
namespace {

// The number behind `name` in lines of "name: 123 kB" or "name 123".
std::optional<int64_t> NumberOf(absl::string_view text, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, name)) continue;
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(": \t"), absl::SkipEmpty());
    int64_t value = 0;
    if (!words.empty() && absl::SimpleAtoi(words[0], &value)) return value;
  }
  return std::nullopt;
}

std::optional<int64_t> NumberIn(const std::filesystem::path& file) {
  const auto text = ReadFile(file);
  int64_t value = 0;
  if (!text.ok() || !absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &value)) {
    return std::nullopt;  // "max", or there is none
  }
  return value;
}

// What a group has left of its limit; none where it has no limit.
std::optional<int64_t> LeftOf(const std::filesystem::path& group) {
  const auto limit = NumberIn(group / "memory.max"), used = NumberIn(group / "memory.current");
  if (!limit || !used) return std::nullopt;
  const auto stat = ReadFile(group / "memory.stat");
  const int64_t files = stat.ok() ? NumberOf(*stat, "inactive_file").value_or(0) : 0;
  return std::max<int64_t>(0, *limit - (*used - files));
}

}  // namespace

absl::StatusOr<int64_t> FreeMemory(const std::filesystem::path& root) {
  TUTTI_ASSIGN_OR_RETURN(const std::string memory, ReadFile(root / "proc/meminfo"));
  const auto available = NumberOf(memory, "MemAvailable");
  if (!available) return absl::NotFoundError("/proc/meminfo does not say MemAvailable");
  int64_t free = *available * 1024;
  const auto groups = ReadFile(root / "proc/self/cgroup");
  if (!groups.ok()) return free;
  for (absl::string_view line : absl::StrSplit(*groups, '\n')) {
    if (!absl::ConsumePrefix(&line, "0::/")) continue;
    const std::filesystem::path top = root / "sys/fs/cgroup";
    for (std::filesystem::path group = top / std::string(line);; group = group.parent_path()) {
      free = std::min(free, LeftOf(group).value_or(free));
      if (group == top || !group.has_relative_path()) break;
    }
  }
  return free;
}

}  // namespace tutti::base
