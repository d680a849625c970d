#include "platform/launch/node/memory_watch.h"

#include <unistd.h>

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/text/binary_size.h"
#include "platform/launch/process/own_children.h"

namespace tutti::launch {
namespace {

// Returns the sum of the lines "NAME: 12 kB" of the file that have one of the names; nothing for a
// process that has ended.
std::optional<int64_t> BytesIn(pid_t pid, const char* file,
                               const std::vector<absl::string_view>& names) {
  const auto text = base::ReadFile(absl::StrCat("/proc/", pid, "/", file));
  if (!text.ok()) return std::nullopt;
  int64_t kilobytes = 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    const bool counts = std::any_of(names.begin(), names.end(), [&](absl::string_view name) {
      return absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, ":");
    });
    int64_t value = 0;
    absl::ConsumeSuffix(&line, "kB");
    if (counts && absl::SimpleAtoi(absl::StripAsciiWhitespace(line), &value)) kilobytes += value;
  }
  return kilobytes * 1024;
}

// Resident bytes without the files that are mapped, which the kernel can drop. Pages of memory that
// processes share (memfd, /dev/shm, anonymous) count in each.
int64_t QuickBytes(pid_t pid) {
  return BytesIn(pid, "status", {"RssAnon", "RssShmem"}).value_or(0);
}

// The same by share: a page that n processes have counts an n-th in each.
int64_t ProportionalBytes(pid_t pid) {
  const auto bytes = BytesIn(pid, "smaps_rollup", {"Pss_Anon", "Pss_Shmem"});
  return bytes ? *bytes : QuickBytes(pid);
}

}  // namespace

std::optional<MemoryBreach> MemoryWatch::Look(const std::vector<RankLeader>& leaders) {
  if (share_ <= 0) {
    interval_ = absl::InfiniteDuration();
    return std::nullopt;
  }
  const absl::Duration began = base::SteadyNow();
  const std::vector<pid_t> all = WithoutOwnChildren(base::Descendants(::getpid()));
  int64_t quick = 0;
  for (const pid_t pid : all) quick += QuickBytes(pid);
  // What it costs grows with the processes of the machine, and with their pages where they are
  // summed by share.
  const absl::Cleanup set_interval = [&] {
    interval_ = std::max(20 * (base::SteadyNow() - began),
                         absl::Milliseconds(quick < share_ / 2 ? 500 : 100));
  };
  if (quick <= share_) return std::nullopt;
  // Memory that one process gave back while others were summed, and that another took, counts
  // twice.
  const std::optional<MemoryBreach> breach = SumByRank(leaders, all);
  return breach ? SumByRank(leaders, WithoutOwnChildren(base::Descendants(::getpid()))) : breach;
}

std::optional<MemoryBreach> MemoryWatch::SumByRank(const std::vector<RankLeader>& leaders,
                                                   const std::vector<pid_t>& all) const {
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
