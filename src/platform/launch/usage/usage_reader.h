// UsageReader makes samples of what the processes of a node use (spec/json/usage_sample.h). Finding
// the processes of each rank takes a look at all processes of the machine, so that it is done
// rarely where that takes long; the others in between are read by themselves. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "platform/launch/process/process_tree.h"
#include "platform/launch/usage/machine_counters.h"
#include "platform/launch/usage/process_counters.h"
#include "spec/json/usage_sample.h"

namespace tutti::launch {

class UsageReader {
 public:
  // Takes rates from `began` on, by base::SteadyNow. `memory_share`: bytes to which the launcher
  // holds the node's processes; 0: to none.
  UsageReader(int64_t memory_share, absl::Duration began);

  // Reads what the processes below this one use, but for its own children (own_children.h). `now`:
  // by base::SteadyNow, `time` by the wall's clock.
  spec::UsageSample Read(const std::vector<RankLeader>& leaders, absl::Duration now,
                         absl::Time time);

 private:
  struct Process {
    int rank;  // -1: of none
    ProcessFiles files;
    bool is_new = true;
    ProcessCounters counters;
  };
  struct Use {
    double cpu = 0, disk_read = 0, disk_write = 0;
  };
  // Total is what the processes of a rank have used since the sample before; rank -1 is all of
  // them.
  struct Total {
    Use own;     // by themselves; of disks also what children did that they have waited for
    Use waited;  // of those children, of processors
    Use gone;    // by those that have ended, in all their life: it is in what was waited for
    double memory = 0;
    bool has_disk = true;
    pid_t busiest = 0;
  };
  struct Waiting {
    pid_t process = 0;
    double seconds = 0;
  };

  void FindProcesses(const std::vector<RankLeader>& leaders, absl::Duration now);
  // Reads the counters of all; what began unseen counts from now on.
  std::map<int, Total> ReadProcesses();
  // Adds what the process has used since it was read before.
  void AddProcess(pid_t pid, const Process& process, const ProcessCounters& now,
                  Total& total) const;
  // Returns what the rank has used. Who ended was counted while it ran, and counts no more when its
  // parent has waited for it, which is in this sample or, if it ended between two reads, the next.
  Use UsedBy(int rank, const Total& total);
  spec::RankUsage UsageOf(int rank, const Total& total, double seconds);
  void AddMachine(double seconds, spec::UsageSample& sample);
  void AddMemoryLeft(const MachineCounters& machine, spec::UsageSample& sample);
  double CountedTwice(double memory);

  const int64_t memory_share_;
  absl::Duration read_at_;
  absl::Duration find_next_, found_at_;
  bool counts_new_ = true;  // processes began after the sample before
  std::vector<RankLeader> known_leaders_;
  const size_t most_kept_open_;  // processes
  std::map<pid_t, Process> processes_;
  std::map<int, Use> gone_before_;  // of ranks, what may be waited for yet
  std::map<int, Waiting> waiting_;
  std::optional<MachineCounters> machine_before_;
  std::vector<std::filesystem::path> cgroups_;
  absl::Duration weigh_next_;
  double counted_twice_ = 0;
};

}  // namespace tutti::launch
