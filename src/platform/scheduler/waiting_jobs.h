// WaitingJobs keeps the queue between decisions: jobs that ask for the same (as many nodes, or as
// large parts of them, for as long) stand behind one another, so that what can start is found from
// the first of each kind, however many wait. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "platform/scheduler/scheduler.h"

namespace tutti::scheduler {

class WaitingJobs {
 public:
  using Kind = std::tuple<int, absl::Duration, std::optional<Resources>>;  // nodes, limit, part
  using Place = std::tuple<int, int64_t, std::string>;  // in the queue: the least goes first
  using Line = std::map<Place, PendingJob>;             // never empty

  // Adds a job; one of that id is replaced.
  void Add(PendingJob job);
  // Does nothing if there is none of that id.
  void Remove(const std::string& id);

  bool empty() const { return where_.empty(); }
  size_t size() const { return where_.size(); }
  const std::map<Kind, Line>& lines() const { return lines_; }
  std::vector<PendingJob> InOrder() const;
  static Kind KindOf(const PendingJob& job) { return {job.node_count, job.time_limit, job.part}; }
  static Place PlaceOf(const PendingJob& job) {
    return {-static_cast<int>(job.priority), job.sequence, job.id};
  }

 private:
  std::map<Kind, Line> lines_;
  std::map<std::string, std::pair<Kind, Place>> where_;  // by id
};

// Returns the starts that Schedule would decide on for the same jobs. Takes as long as there are
// kinds of jobs and starts, not jobs: of a kind whose first cannot start now none behind it can.
std::vector<Start> StartsOf(const WaitingJobs& waiting, const std::vector<RunningJob>& running,
                            const std::vector<ClusterNode>& nodes, absl::Time now,
                            int cordoned = 0);

// Returns the start of `job` that StartsOf would return if it were one of those that wait, if any.
std::optional<Start> StartAmong(const WaitingJobs& waiting, const PendingJob& job,
                                const std::vector<RunningJob>& running,
                                const std::vector<ClusterNode>& nodes, absl::Time now,
                                int cordoned = 0);

}  // namespace tutti::scheduler
