// Holds a node's processes to the node's share of memory. A quick look sums what each process has
// resident, without files; only when that is over the share is the proportional size (PSS) of each
// summed, which counts a page once that several share, by fork or as shared memory, and is dear to
// ask for. Shared memory that no process has mapped, as a file in /dev/shm, is not seen. Not
// thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "platform/launch/process/process_tree.h"

namespace tutti::launch {

struct MemoryBreach {
  int rank;                      // whose processes use most
  std::vector<pid_t> processes;  // of that rank
  std::string
      reason;  // "out of memory: rank 1 used 5.2 GiB; the node's processes used 8.1 GiB of …"
};

class MemoryWatch {
 public:
  // `share` in bytes; 0: no limit, nothing is looked at.
  explicit MemoryWatch(int64_t share) : share_(share) {}

  // Looks at all descendants of this process, twice before it says that they are over. Those that
  // belong to no leader by parentage are told by the RANK in their environment.
  std::optional<MemoryBreach> Look(const std::vector<RankLeader>& leaders);

  // Returns when to look again: sooner, the closer the last look came to the share.
  absl::Duration interval() const { return interval_; }

 private:
  std::optional<MemoryBreach> SumByRank(const std::vector<RankLeader>& leaders,
                                        const std::vector<pid_t>& all) const;

  const int64_t share_;
  absl::Duration interval_ = absl::Milliseconds(200);
};

// Returns the count of the kernel's out-of-memory kills on this machine since boot, for whatever
// limit; of one that has ended so it is counted before. Nothing where it is not told.
std::optional<int64_t> KernelOutOfMemoryKills();

}  // namespace tutti::launch
