#include "base/process/process_use.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/machine/folder.h"
#include "base/process/child_process.h"

namespace tutti::base {
namespace {

// When this machine was started, by its clock now.
absl::Time BootTime() {
  const auto text = base::ReadFile("/proc/uptime");
  double seconds = 0;
  if (!text.ok() || !absl::SimpleAtod(text->substr(0, text->find(' ')), &seconds)) {
    return absl::UnixEpoch();
  }
  return absl::Now() - absl::Seconds(seconds);
}

absl::Time StartTime() {
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto began = base::ProcessStartTime(::getpid()).value_or(0);
  return BootTime() + absl::Seconds(static_cast<double>(began) / ticks);
}

int64_t ResidentPages() {
  const auto text = base::ReadFile("/proc/self/statm");
  const std::vector<std::string> sizes = absl::StrSplit(text.value_or(""), ' ');
  int64_t pages = 0;
  return sizes.size() > 1 && absl::SimpleAtoi(sizes[1], &pages) ? pages : 0;
}

}  // namespace

ProcessUse ReadProcessUse() {
  ProcessUse use;
  timespec used = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  use.processor_seconds = absl::ToDoubleSeconds(absl::DurationFromTimespec(used));
  // Once: read again it would differ a little, and look like a restart.
  static const absl::Time started = StartTime();
  use.started = started;
  use.resident_bytes = ResidentPages() * ::sysconf(_SC_PAGESIZE);
  use.threads = static_cast<int64_t>(base::NamesIn("/proc/self/task").size());
  use.open_files = static_cast<int64_t>(base::NamesIn("/proc/self/fd").size());
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    use.most_files = static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX));
  }
  return use;
}

}  // namespace tutti::base
