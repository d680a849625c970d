// Reads the stacks of all processes of a node's ranks: what Python does by py-spy, which stops
// nobody (--nonblocking), native frames by gdb only where they are asked for, since a process is
// stopped meanwhile; of what is no Python, and where neither is to be had, what Linux tells.
// docs/decisions/102-stacks.md. Not for the thread of NodeProcesses.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/deadline.h"
#include "platform/launch/process/process_tree.h"
#include "spec/json/rank_stacks.h"

namespace tutti::launch {

struct StackTools {
  std::string path;  // where they are looked for after the process's own
  absl::Duration python_limit = absl::Seconds(10);
  // A rank that is stopped for four seconds is lost to the others of tutti's collectives.
  absl::Duration native_limit = absl::Seconds(3);
};

struct StackRequest {
  std::vector<RankLeader> leaders;  // all ranks that run here
  std::vector<int> ranks;           // that are asked for
  bool native = false;
  base::Deadline end;  // what has not begun by then is left out
};

// Returns an entry for each rank that is asked for, after at most the longest limit beyond the end,
// or some 50 ms after `cancelled` was set. Two processes are read at a time; Python's come first.
std::map<int, spec::RankStacks> ReadStacks(const StackRequest& request, const StackTools& tools,
                                           const std::atomic<bool>& cancelled);

// Returns gdb's frames of each thread, without what it says besides; "" if there are none.
std::string FramesOfGdb(absl::string_view said);

}  // namespace tutti::launch
