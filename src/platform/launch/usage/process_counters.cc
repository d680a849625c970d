#include "platform/launch/usage/process_counters.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"

namespace tutti::launch {
namespace {

// These count the fields of /proc/PID/stat from its third on, as the second, a name, may hold
// spaces.
constexpr size_t kOwnTime = 11, kTimeFields = 4;  // utime, stime, cutime, cstime
constexpr size_t kBegan = 19;

// Returns what the file says now; empty once the process has ended.
absl::string_view ReadAgain(base::UniqueFd& file, pid_t pid, const char* name,
                            char (&buffer)[4096]) {
  if (!file.valid()) {
    auto opened = base::Open(absl::StrCat("/proc/", pid, "/", name), O_RDONLY);
    if (!opened.ok()) return "";
    file = *std::move(opened);
  }
  const ssize_t size = ::pread(file.get(), buffer, sizeof buffer, 0);
  return {buffer, size < 0 ? 0 : static_cast<size_t>(size)};
}

bool ReadLine(absl::string_view line, absl::string_view name, double& value) {
  return absl::ConsumePrefix(&line, name) && absl::SimpleAtod(line, &value);
}

}  // namespace

std::optional<ProcessCounters> CountersIn(absl::string_view stat, absl::string_view statm,
                                          absl::string_view io) {
  static const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  static const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  const size_t name_end = stat.rfind(')');
  if (name_end == absl::string_view::npos) return std::nullopt;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(stat.substr(name_end + 1), ' ', absl::SkipEmpty());
  if (fields.size() < kOwnTime + kTimeFields || fields[0].size() != 1) return std::nullopt;
  ProcessCounters counters{.state = fields[0][0]};
  if (!absl::SimpleAtoi(fields[1], &counters.parent)) return std::nullopt;
  for (size_t i = kOwnTime; i < kOwnTime + kTimeFields; ++i) {
    double ticks = 0;
    if (!absl::SimpleAtod(fields[i], &ticks)) return std::nullopt;
    (i < kOwnTime + 2 ? counters.cpu : counters.cpu_waited) += ticks * tick;
  }
  if (fields.size() <= kBegan || !absl::SimpleAtod(fields[kBegan], &counters.began)) {
    return std::nullopt;
  }
  const std::vector<absl::string_view> pages = absl::StrSplit(statm, ' ');
  double resident = 0, of_files = 0;
  if (pages.size() > 2 && absl::SimpleAtod(pages[1], &resident) &&
      absl::SimpleAtod(pages[2], &of_files)) {
    counters.memory = std::max(0.0, resident - of_files) * page;
  }
  bool read = false, written = false;
  for (const absl::string_view line : absl::StrSplit(io, '\n')) {
    read |= ReadLine(line, "read_bytes:", counters.disk_read);
    written |= ReadLine(line, "write_bytes:", counters.disk_write);
  }
  counters.has_disk = read && written;
  return counters;
}

std::optional<ProcessCounters> ProcessFiles::Read(bool keep) {
  char stat[4096], statm[4096], io[4096];
  const auto counters =
      CountersIn(ReadAgain(stat_, pid_, "stat", stat), ReadAgain(statm_, pid_, "statm", statm),
                 ReadAgain(io_, pid_, "io", io));
  if (!keep) {
    for (base::UniqueFd* const file : {&stat_, &statm_, &io_}) file->reset();
  }
  if (!counters || counters->began != began_.value_or(counters->began)) return std::nullopt;
  began_ = counters->began;
  return counters;
}

std::optional<double> SecondsWithoutProcessor(pid_t pid) {
  const auto text = base::ReadFile(absl::StrCat("/proc/", pid, "/schedstat"), 4096);
  if (!text.ok()) return std::nullopt;
  const std::vector<absl::string_view> fields = absl::StrSplit(*text, ' ');
  double nanoseconds = 0;
  if (fields.size() < 2 || !absl::SimpleAtod(fields[1], &nanoseconds)) return std::nullopt;
  return nanoseconds * 1e-9;
}

absl::Duration ProcessorTime() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

}  // namespace tutti::launch
