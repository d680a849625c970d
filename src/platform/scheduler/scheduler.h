// Decides which waiting jobs start on which nodes, and says why each other job waits, as a pure
// function of the queue, the running gangs, the nodes and the time. No clock, no effect, no state.
// Gangs take whole nodes, or a share of as many: all at once or none.
//
// Order: priority, then first come first served. The first job that does not fit reserves the
// earliest time at which it will (EASY backfill: Lifka 1995, "The ANL/IBM SP scheduling system"); a
// later job may start now if it leaves that reservation untouched, because it ends before it by its
// own wall-time limit or because it uses what the reservation does not need. Shares go to nodes
// that have shares already and fit best, so that whole nodes stay (decision 060).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "platform/scheduler/resources.h"
#include "spec/types/job.h"

namespace tutti::scheduler {

struct PendingJob {
  std::string id;
  spec::Priority priority = spec::Priority::kNormal;
  int64_t sequence = 0;  // order of submission
  int node_count = 1;
  absl::Duration time_limit = absl::InfiniteDuration();
  std::vector<std::string> avoid = {};  // nodes that it has only if there are no others
  // It asks for this share of each of its nodes, as NeedOn reads it; none: it takes whole nodes.
  std::optional<Resources> share = std::nullopt;
  // More of its kind are behind it that are not told of: what is said of it goes for them too.
  bool stands_for_more = false;
};

// Returns whether `a` is ahead of `b` in the queue.
bool GoesFirst(const PendingJob& a, const PendingJob& b);

struct RunningJob {
  std::string id;
  std::vector<std::string> nodes;
  absl::Time expected_end = absl::InfiniteFuture();  // start + wall-time limit
  std::vector<Resources> shares = {};                // what it has of each of them; empty: all
};

struct Start {
  std::string job_id;
  std::vector<std::string> nodes;
  std::vector<Resources> shares = {};  // as in RunningJob
};

struct Wait {
  std::string job_id;
  std::string reason;  // "waits for 2 nodes, 1 is free; runs next" in plain words
  std::optional<absl::Time> expected_start;
  // Of the first job that waits: it starts by then at the latest if the jobs that run end by their
  // time limits, no node goes away and no job of a higher priority comes. Of all others it is an
  // estimate: jobs behind them that leave the first one's reservation untouched may delay them.
  bool starts_by_then = false;
};

struct Decision {
  std::vector<Start> starts;
  std::vector<Wait> waits;  // every pending job that does not start, in queue order
};

// Decides what starts: `nodes` are those that jobs may start on; `cordoned` is how many more the
// cluster has.
Decision Schedule(const std::vector<PendingJob>& pending, const std::vector<RunningJob>& running,
                  const std::vector<ClusterNode>& nodes, absl::Time now, int cordoned = 0);

}  // namespace tutti::scheduler
