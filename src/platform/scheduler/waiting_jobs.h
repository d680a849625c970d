// WaitingJobs keeps the queue between decisions: jobs that ask for the same (as many nodes, or as
// large shares of them, for as long) stand behind one another, so that what can start is found from
// the first of each kind, however many wait. Not thread-safe.
#pragma once

#include <cstdint>
#include <ext/pb_ds/assoc_container.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "platform/scheduler/scheduler.h"

namespace tutti::scheduler {

class WaitingJobs {
 public:
  using Kind = std::tuple<int, absl::Duration, std::optional<Resources>>;  // nodes, limit, share
  using Place = std::tuple<int, int64_t, std::string>;  // in the queue: the least goes first
  using Line = std::map<Place, PendingJob>;             // never empty

  // Adds a job; one of that id is replaced.
  void Add(PendingJob job);
  // Does nothing if there is none of that id.
  void Remove(const std::string& id);

  bool empty() const { return where_.empty(); }
  size_t size() const { return where_.size(); }
  const std::map<Kind, Line>& lines() const { return lines_; }
  // Returns the first jobs in the order of the queue, `most` of them, and behind them, if there are
  // more, the next one of each kind, which stands for those of its kind behind it; `most` kinds.
  std::vector<PendingJob> First(size_t most) const;
  // Returns the ids of the first jobs in the order of the queue, `most` of them.
  std::vector<std::string> FirstIds(size_t most) const;
  // Returns how many jobs are ahead of it in the queue, in logarithmic time; nothing if there is
  // none of that id.
  std::optional<size_t> AheadOf(const std::string& id) const;
  // Returns null if there is none of that id.
  const Kind* KindOf(const std::string& id) const;
  static Kind KindOf(const PendingJob& job) { return {job.node_count, job.time_limit, job.share}; }
  static Place PlaceOf(const PendingJob& job) {
    return {-static_cast<int>(job.priority), job.sequence, job.id};
  }

 private:
  // A tree that counts what is below each of its nodes, so that it knows the place of a key.
  using Order =
      __gnu_pbds::tree<Place, __gnu_pbds::null_type, std::less<Place>, __gnu_pbds::rb_tree_tag,
                       __gnu_pbds::tree_order_statistics_node_update>;

  std::map<Kind, Line> lines_;
  Order order_;                                          // of all of them
  std::map<std::string, std::pair<Kind, Place>> where_;  // by id
};

// Waits holds what jobs wait for, in a queue of which the first jobs were told of: each of these
// has a reason of its own, those behind have one a kind. Not thread-safe.
class Waits {
 public:
  Waits() = default;
  // `told`: First of the queue, and `waits` what Schedule says of them.
  Waits(const std::vector<PendingJob>& told, const std::vector<Wait>& waits);
  // All wait for that.
  explicit Waits(std::string all) : all_(Wait{"", std::move(all), std::nullopt}) {}

  // Returns what a job of `queue` waits for; null if nothing is known of it, or if it is none.
  const Wait* Of(const std::string& id, const WaitingJobs& queue) const;
  // Call when a job leaves the queue.
  void Forget(const std::string& id) { of_job_.erase(id); }

 private:
  std::unordered_map<std::string, Wait> of_job_;
  std::map<WaitingJobs::Kind, Wait> of_kind_;
  std::optional<Wait> all_;
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
