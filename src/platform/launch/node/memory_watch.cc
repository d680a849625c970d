#include "platform/launch/node/memory_watch.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/text/binary_size.h"

namespace tutti::launch {
namespace {

// Private resident bytes; 0 for a process that has ended.
int64_t PrivateBytes(pid_t pid) {
  const auto text = base::ReadFile(absl::StrCat("/proc/", pid, "/statm"));
  if (!text.ok()) return 0;
  const std::vector<absl::string_view> fields = absl::StrSplit(*text, ' ');
  int64_t resident = 0, shared = 0;
  if (fields.size() < 3 || !absl::SimpleAtoi(fields[1], &resident) ||
      !absl::SimpleAtoi(fields[2], &shared)) {
    return 0;
  }
  return (resident - shared) * ::sysconf(_SC_PAGESIZE);
}

// Anonymous and shared-memory pages by share; without the files that are mapped, which the kernel
// can drop.
int64_t ProportionalBytes(pid_t pid) {
  const auto text = base::ReadFile(absl::StrCat("/proc/", pid, "/smaps_rollup"));
  if (!text.ok()) return PrivateBytes(pid);
  int64_t kilobytes = 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    if (!absl::ConsumePrefix(&line, "Pss_Anon:") && !absl::ConsumePrefix(&line, "Pss_Shmem:")) {
      continue;
    }
    int64_t value = 0;
    absl::ConsumeSuffix(&line, "kB");
    if (absl::SimpleAtoi(absl::StripAsciiWhitespace(line), &value)) kilobytes += value;
  }
  return kilobytes * 1024;
}

}  // namespace

std::optional<MemoryBreach> MemoryWatch::Look(const std::vector<RankLeader>& leaders) {
  if (share_ <= 0) {
    interval_ = absl::InfiniteDuration();
    return std::nullopt;
  }
  const absl::Duration began = base::SteadyNow();
  const std::vector<pid_t> all = base::Descendants(::getpid());
  int64_t quick = 0;
  for (const pid_t pid : all) quick += PrivateBytes(pid);
  const absl::Duration cost = base::SteadyNow() - began;  // grows with the processes of the machine
  interval_ = std::max(20 * cost, absl::Milliseconds(quick < share_ / 2 ? 500 : 100));
  if (quick <= share_) return std::nullopt;

  MemoryBreach breach{-1, {}, ""};
  int64_t total = 0, most = -1;
  for (auto& [rank, processes] : ProcessesByRank(leaders, all)) {
    int64_t sum = 0;
    for (const pid_t pid : processes) sum += ProportionalBytes(pid);
    total += sum;
    if (sum > most) {
      most = sum;
      breach.rank = rank;
      breach.processes = std::move(processes);
    }
  }
  if (total <= share_) return std::nullopt;
  breach.reason = absl::StrCat("out of memory: rank ", breach.rank, " used ",
                               base::BinarySize(most), "; the node's processes used ",
                               base::BinarySize(total), " of its ", base::BinarySize(share_));
  return breach;
}

std::optional<int64_t> KernelOutOfMemoryKills() {
  const auto text = base::ReadFile("/proc/vmstat");
  if (!text.ok()) return std::nullopt;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    int64_t count = 0;
    if (absl::ConsumePrefix(&line, "oom_kill ") && absl::SimpleAtoi(line, &count)) return count;
  }
  return std::nullopt;
}

}  // namespace tutti::launch
