#include "platform/launch/usage/machine_counters.h"

#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr double kNoLimit = 1e18;  // v1 has a number near 2^63 where there is none
constexpr size_t kMostCgroups = 8;

std::optional<double> NumberIn(const fs::path& file) {
  const auto text = base::ReadFile(file, 4096);
  double number = 0;
  if (!text.ok() || !absl::SimpleAtod(absl::StripAsciiWhitespace(*text), &number)) {
    return std::nullopt;
  }
  return number;
}

// Returns the number behind `name` at the beginning of a line.
std::optional<double> NumberAfter(absl::string_view text, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, name)) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    double number = 0;
    if (!words.empty() && absl::SimpleAtod(words[0], &number)) return number;
  }
  return std::nullopt;
}

// "cpu  USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL GUEST …"; guests are in USER already, and
// what was stolen ran elsewhere.
std::optional<double> BusySeconds(const fs::path& root) {
  static const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto text = base::ReadFile(root / "proc/stat", 16 << 20);
  if (!text.ok()) return std::nullopt;
  const absl::string_view line = absl::string_view(*text).substr(0, text->find('\n'));
  const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
  double ticks = 0;
  for (const size_t field : {1, 2, 3, 6, 7}) {
    double value = 0;
    if (field >= fields.size() || !absl::SimpleAtod(fields[field], &value)) return std::nullopt;
    ticks += value;
  }
  return ticks * tick;
}

struct Interface {
  std::string name;
  double received = 0, sent = 0;
};

std::vector<Interface> Interfaces(const fs::path& root) {
  std::vector<Interface> interfaces;
  const auto text = base::ReadFile(root / "proc/net/dev", 1 << 20);
  if (!text.ok()) return interfaces;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<absl::string_view> halves = absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (halves.size() != 2) continue;
    const std::vector<absl::string_view> fields = absl::StrSplit(halves[1], ' ', absl::SkipEmpty());
    Interface found{.name = std::string(absl::StripAsciiWhitespace(halves[0]))};
    if (fields.size() > 8 && absl::SimpleAtod(fields[0], &found.received) &&
        absl::SimpleAtod(fields[8], &found.sent) && found.name != "lo") {
      interfaces.push_back(std::move(found));
    }
  }
  return interfaces;
}

void AddNetwork(const fs::path& root, MachineCounters& counters) {
  std::vector<Interface> interfaces = Interfaces(root);
  const auto has_device = [&](const Interface& interface) {
    std::error_code error;
    return fs::exists(root / "sys/class/net" / interface.name / "device", error);
  };
  if (std::any_of(interfaces.begin(), interfaces.end(), has_device)) {
    std::erase_if(interfaces, [&](const Interface& other) { return !has_device(other); });
  }
  if (interfaces.empty()) return;
  counters.net_received = counters.net_sent = 0;
  for (const Interface& interface : interfaces) {
    *counters.net_received += interface.received;
    *counters.net_sent += interface.sent;
  }
}

// The limits of v2 and v1.
std::optional<double> LimitOf(const fs::path& cgroup) {
  auto limit = NumberIn(cgroup / "memory.max");
  if (!limit) limit = NumberIn(cgroup / "memory.limit_in_bytes");
  return limit && *limit < kNoLimit ? limit : std::nullopt;
}

}  // namespace

MachineCounters ReadMachine(const fs::path& root) {
  MachineCounters counters{.cpu = BusySeconds(root)};
  const auto memory = base::ReadFile(root / "proc/meminfo", 1 << 16);
  const auto kilobytes = memory.ok() ? NumberAfter(*memory, "MemAvailable:") : std::nullopt;
  if (kilobytes) counters.memory_available = *kilobytes * 1024;
  AddNetwork(root, counters);
  return counters;
}

std::vector<fs::path> MemoryCgroups(absl::string_view cgroup, const fs::path& root) {
  std::vector<fs::path> limited;
  for (const absl::string_view line : absl::StrSplit(cgroup, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3 || (fields[1] != "" && fields[1] != "memory")) continue;
    const fs::path mount = root / "sys/fs/cgroup" / std::string(fields[1]);
    fs::path path = fs::path(std::string(fields[2])).relative_path();
    while (limited.size() < kMostCgroups) {
      if (LimitOf(mount / path)) limited.push_back(mount / path);
      if (path.empty()) break;
      path = path.parent_path();
    }
  }
  return limited;
}

std::optional<double> LeftOfCgroup(const fs::path& cgroup) {
  const auto limit = LimitOf(cgroup);
  auto used = NumberIn(cgroup / "memory.current");
  if (!used) used = NumberIn(cgroup / "memory.usage_in_bytes");
  if (!limit || !used) return std::nullopt;
  const auto stat = base::ReadFile(cgroup / "memory.stat", 1 << 16);
  if (stat.ok()) {
    auto unused = NumberAfter(*stat, "total_inactive_file ");
    if (!unused) unused = NumberAfter(*stat, "inactive_file ");
    *used -= unused.value_or(0);
  }
  return std::max(0.0, *limit - std::max(0.0, *used));
}

}  // namespace tutti::launch
