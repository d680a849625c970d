#include "platform/launch/usage/usage_reader.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "platform/launch/process/own_children.h"

namespace tutti::launch {
namespace {

constexpr int kOfAll = -1;
// Looks that take long are rare: at most 1/2000 of a processor goes into each kind.
constexpr double kRarely = 2000;
constexpr size_t kMostKeptOpen = 128;  // processes, of three files each
constexpr absl::Duration kBetweenSamples = absl::Milliseconds(1500);

// Returns what has come since then; of counters that have gone back, as a process has ended that
// nobody waited for, nothing.
double Since(double before, double now) { return std::max(0.0, now - before); }

// The launcher needs files for more than this.
size_t MostKeptOpen() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  constexpr rlim_t kPart = 4, kFiles = 3, kSmall = 256;
  if (limit.rlim_cur < kSmall) return 0;
  return std::min<rlim_t>(kMostKeptOpen, limit.rlim_cur / kPart / kFiles);
}

bool IsSame(const RankLeader& a, const RankLeader& b) { return a.rank == b.rank && a.pid == b.pid; }

float Rate(const std::optional<double>& before, const std::optional<double>& now, double seconds) {
  if (!before || !now) return spec::kUnknownUsage;
  return static_cast<float>(Since(*before, *now) / seconds);
}

// The bytes of memory of a process in which a page that n have counts an n-th; 0 if it has ended.
double WeighedMemory(pid_t pid) {
  const auto text = base::ReadFile(absl::StrCat("/proc/", pid, "/smaps_rollup"), 1 << 16);
  double kilobytes = 0;
  if (!text.ok()) return 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    absl::ConsumeSuffix(&line, "kB");
    if (absl::ConsumePrefix(&line, "Pss_Anon:") && absl::SimpleAtod(line, &kilobytes)) break;
  }
  return kilobytes * 1024;
}

}  // namespace

UsageReader::UsageReader(int64_t memory_share, absl::Duration began)
    : memory_share_(memory_share),
      read_at_(began),
      find_next_(began),
      found_at_(began),
      most_kept_open_(MostKeptOpen()),
      weigh_next_(began) {}

spec::UsageSample UsageReader::Read(const std::vector<RankLeader>& leaders, absl::Duration now,
                                    absl::Time time) {
  FindProcesses(leaders, now);
  std::map<int, Total> totals = ReadProcesses();
  const double seconds = std::max(1e-3, absl::ToDoubleSeconds(now - read_at_));
  spec::UsageSample sample{.time = time};
  for (const auto& [rank, total] : totals) {
    if (rank != kOfAll) sample.ranks.push_back(UsageOf(rank, total, seconds));
  }
  const spec::RankUsage all = UsageOf(kOfAll, totals[kOfAll], seconds);
  sample.cpu = all.cpu;
  sample.memory = all.memory;
  sample.disk_read = all.disk_read;
  sample.disk_write = all.disk_write;
  AddMachine(seconds, sample);
  read_at_ = now;
  return sample;
}

void UsageReader::FindProcesses(const std::vector<RankLeader>& leaders, absl::Duration now) {
  if (now < find_next_ && std::equal(leaders.begin(), leaders.end(), known_leaders_.begin(),
                                     known_leaders_.end(), IsSame)) {
    return;
  }
  known_leaders_ = leaders;
  const absl::Duration began = ProcessorTime();
  const std::vector<pid_t> all = WithoutOwnChildren(base::Descendants(::getpid()));
  std::map<pid_t, int> rank_of;
  for (const pid_t pid : all) rank_of[pid] = kOfAll;
  const auto runs_here = [&](int rank) {
    return std::any_of(leaders.begin(), leaders.end(),
                       [rank](const RankLeader& leader) { return leader.rank == rank; });
  };
  // A process that no rank has started may say any RANK.
  for (const auto& [rank, processes] : ProcessesByRank(leaders, all)) {
    if (!runs_here(rank)) continue;
    for (const pid_t pid : processes) rank_of[pid] = rank;
  }
  // Processes that are not among them have ended: their counters are there until they are waited
  // for.
  for (const auto& [pid, rank] : rank_of) {
    processes_.try_emplace(pid, Process{.rank = rank, .files = ProcessFiles(pid)})
        .first->second.rank = rank;
  }
  if (!leaders.empty()) {
    const auto cgroup = base::ReadFile(absl::StrCat("/proc/", leaders[0].pid, "/cgroup"), 1 << 16);
    if (cgroup.ok()) cgroups_ = MemoryCgroups(*cgroup, "/");
  }
  counts_new_ = now - found_at_ <= kBetweenSamples;
  found_at_ = now;
  find_next_ = now + kRarely * (ProcessorTime() - began);
}

std::map<int, UsageReader::Total> UsageReader::ReadProcesses() {
  std::map<int, Total> totals;
  totals[kOfAll];
  for (const RankLeader& leader : known_leaders_) totals[leader.rank];
  size_t number = 0;
  for (auto next = processes_.begin(); next != processes_.end();) {
    const auto at = next++;
    Process& process = at->second;
    const std::set<int> ranks = {kOfAll, process.rank};
    auto now = process.files.Read(++number <= most_kept_open_);
    if (now && !now->has_disk) {
      now->disk_read = process.counters.disk_read;
      now->disk_write = process.counters.disk_write;
    }
    for (const int rank : ranks) {
      // Nobody asks for a rank that has ended.
      const auto total = totals.find(rank);
      if (total == totals.end()) continue;
      if (now) {
        AddProcess(at->first, process, *now, total->second);
      } else if (process.counters.parent != ::getpid()) {  // which counts nowhere
        const ProcessCounters& last = process.counters;
        total->second.gone.cpu += last.cpu + last.cpu_waited;
        total->second.gone.disk_read += last.disk_read;
        total->second.gone.disk_write += last.disk_write;
      }
    }
    if (!now) {
      processes_.erase(at);
      continue;
    }
    process.counters = *now;
    process.is_new = false;
  }
  return totals;
}

void UsageReader::AddProcess(pid_t pid, const Process& process, const ProcessCounters& now,
                             Total& total) const {
  const ProcessCounters before = !process.is_new ? process.counters
                                 : counts_new_   ? ProcessCounters()
                                                 : now;
  total.own.cpu += Since(before.cpu, now.cpu);
  total.waited.cpu += Since(before.cpu_waited, now.cpu_waited);
  total.own.disk_read += Since(before.disk_read, now.disk_read);
  total.own.disk_write += Since(before.disk_write, now.disk_write);
  total.memory += now.memory;
  total.has_disk &= now.has_disk || now.state == 'Z';
  const auto busiest = processes_.find(total.busiest);
  if (now.state != 'Z' &&
      (busiest == processes_.end() || now.cpu >= busiest->second.counters.cpu)) {
    total.busiest = pid;
  }
}

UsageReader::Use UsageReader::UsedBy(int rank, const Total& total) {
  Use& before = gone_before_[rank];
  const auto beyond = [](double used, double gone) { return std::max(0.0, used - gone); };
  const auto left = [](double gone, double used) { return std::max(0.0, gone - used); };
  const Use used = {
      .cpu = total.own.cpu + beyond(total.waited.cpu, before.cpu + total.gone.cpu),
      .disk_read = beyond(total.own.disk_read, before.disk_read + total.gone.disk_read),
      .disk_write = beyond(total.own.disk_write, before.disk_write + total.gone.disk_write)};
  // What was gone before and is still not waited for never will be.
  before = {
      .cpu = std::min(total.gone.cpu, left(before.cpu + total.gone.cpu, total.waited.cpu)),
      .disk_read = std::min(total.gone.disk_read,
                            left(before.disk_read + total.gone.disk_read, total.own.disk_read)),
      .disk_write = std::min(total.gone.disk_write, left(before.disk_write + total.gone.disk_write,
                                                         total.own.disk_write))};
  return used;
}

spec::RankUsage UsageReader::UsageOf(int rank, const Total& total, double seconds) {
  static const auto processors = static_cast<double>(::sysconf(_SC_NPROCESSORS_CONF));
  const Use used = UsedBy(rank, total);
  spec::RankUsage usage{.rank = rank};
  usage.cpu = static_cast<float>(std::min(processors, used.cpu / seconds));
  usage.memory = static_cast<float>(total.memory);
  if (total.has_disk) {
    usage.disk_read = static_cast<float>(used.disk_read / seconds);
    usage.disk_write = static_cast<float>(used.disk_write / seconds);
  }
  if (rank == kOfAll || total.busiest == 0) return usage;
  const char state = processes_.at(total.busiest).counters.state;
  usage.stopped = state == 'T' || state == 't';
  usage.blocked = state == 'D';
  if (const auto waited = SecondsWithoutProcessor(total.busiest)) {
    Waiting& waiting = waiting_[rank];
    if (waiting.process == total.busiest) {
      usage.cpu_wait = static_cast<float>(std::min(1.0, Since(waiting.seconds, *waited) / seconds));
    }
    waiting = {.process = total.busiest, .seconds = *waited};
  }
  return usage;
}

void UsageReader::AddMachine(double seconds, spec::UsageSample& sample) {
  const MachineCounters now = ReadMachine("/");
  if (machine_before_) {
    sample.machine_cpu = Rate(machine_before_->cpu, now.cpu, seconds);
    sample.net_receive = Rate(machine_before_->net_received, now.net_received, seconds);
    sample.net_send = Rate(machine_before_->net_sent, now.net_sent, seconds);
  }
  AddMemoryLeft(now, sample);
  machine_before_ = now;
}

void UsageReader::AddMemoryLeft(const MachineCounters& machine, spec::UsageSample& sample) {
  std::optional<double> left = machine.memory_available;
  const auto narrow = [&](std::optional<double> other) {
    if (other) left = std::min(left.value_or(*other), *other);
  };
  for (const std::filesystem::path& cgroup : cgroups_) narrow(LeftOfCgroup(cgroup));
  if (memory_share_ > 0) {
    const double used = sample.memory - CountedTwice(sample.memory);
    narrow(std::max(0.0, static_cast<double>(memory_share_) - used));
  }
  if (left) sample.memory_left = static_cast<float>(*left);
}

// Pages that processes share since a fork are told apart by a walk through their page tables, which
// is dear, and of interest where memory is short alone.
double UsageReader::CountedTwice(double memory) {
  if (memory < static_cast<double>(memory_share_) / 2) return 0;
  if (read_at_ < weigh_next_) return std::min(counted_twice_, memory);
  const absl::Duration began = ProcessorTime();
  double weighed = 0;
  for (const auto& [pid, process] : processes_) {
    // One in the kernel may hold the lock of its memory for long.
    weighed += process.counters.state == 'D' ? process.counters.memory : WeighedMemory(pid);
  }
  counted_twice_ = weighed > 0 ? std::max(0.0, memory - weighed) : 0;
  weigh_next_ = read_at_ + kRarely * (ProcessorTime() - began);
  return counted_twice_;
}

}  // namespace tutti::launch
