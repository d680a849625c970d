#include "platform/scheduler/scheduler.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "platform/scheduler/profile.h"
#include "platform/scheduler/reasons.h"
#include "platform/scheduler/waiting_jobs.h"

namespace tutti::scheduler {
namespace {

// Expected starts are worked out for this many waiting jobs; further back they would be guesses.
constexpr size_t kMostForecasts = 200;

std::vector<PendingJob> InQueueOrder(std::vector<PendingJob> jobs) {
  std::stable_sort(jobs.begin(), jobs.end(), GoesFirst);
  for (PendingJob& job : jobs) job.node_count = std::max(job.node_count, 1);
  return jobs;
}

// One pass over the queue. `profile_` knows what runs, what this pass starts, and the reservation
// of the head: the first job that does not fit.
class Pass {
 public:
  Pass(const std::vector<RunningJob>& running, const std::vector<std::string>& nodes, int cordoned,
       absl::Time now)
      : now_(now), profile_(now, 0) {
    const std::set<std::string> cluster(nodes.begin(), nodes.end());
    std::set<std::string> used;
    load_ = {now, 0, static_cast<int>(cluster.size()), cordoned, {}};
    profile_ = Profile(now, load_.total);
    for (const RunningJob& job : running) {
      int count = 0;  // of its nodes, those that are still part of the cluster
      for (const std::string& node : job.nodes) {
        if (cluster.contains(node) && used.insert(node).second) ++count;
      }
      if (count > 0) Occupy(job.id, count, job.expected_end);
    }
    for (const std::string& node : nodes) {
      if (used.insert(node).second) free_.push_back(node);
    }
  }

  Decision Run(const std::vector<PendingJob>& queue) {
    for (const PendingJob& job : queue) {
      if (job.node_count <= load_.total && MayStartNow(job)) {
        StartNow(job);
      } else {
        waiting_.push_back(&job);
        if (head_ == nullptr && job.node_count <= load_.total) Reserve(job);
      }
    }
    load_.free = static_cast<int>(free_.size());
    Explain();
    return std::move(decision_);
  }

  // Of each kind the first: once it cannot start, all behind it could not either, as nodes and the
  // profile only fill up. The first of all that could not is the head.
  std::vector<Start> Starts(const WaitingJobs& waiting) {
    using Position =
        std::pair<WaitingJobs::Line::const_iterator, WaitingJobs::Line::const_iterator>;
    std::map<WaitingJobs::Place, Position> next;
    for (const auto& [kind, line] : waiting.lines()) {
      if (kind.first <= load_.total)
        next.emplace(line.begin()->first, Position{line.begin(), line.end()});
    }
    while (!free_.empty() && !next.empty()) {
      auto [at, end] = next.begin()->second;
      next.erase(next.begin());
      if (!MayStartNow(at->second)) {
        if (head_ == nullptr) Reserve(at->second);
        continue;
      }
      StartNow(at->second);
      if (++at != end) next.emplace(at->first, Position{at, end});
    }
    return std::move(decision_.starts);
  }

 private:
  void Occupy(const std::string& id, int count, absl::Time end) {
    load_.running.push_back({id, count, end});
    // A job past its end still holds its nodes.
    profile_.Take(count, now_, std::max(end, now_ + absl::Seconds(1)));
  }

  bool MayStartNow(const PendingJob& job) const {
    if (free_.size() < static_cast<size_t>(job.node_count)) return false;
    if (head_ == nullptr) return true;
    // A head that waits for a job without a time limit has no time to reserve. What ends by itself
    // may go first; what may never end takes only nodes that the head does not need.
    if (head_start_ == absl::InfiniteFuture() && job.time_limit == absl::InfiniteDuration()) {
      return job.node_count <= never_needed_;
    }
    return profile_.Earliest(job.node_count, job.time_limit) == now_;
  }

  void StartNow(const PendingJob& job) {
    if (!job.avoid.empty()) PutLast(job.avoid);
    Start start{job.id, {free_.begin(), free_.begin() + job.node_count}};
    free_.erase(free_.begin(), free_.begin() + job.node_count);
    Occupy(job.id, job.node_count, now_ + job.time_limit);
    if (job.time_limit == absl::InfiniteDuration()) never_needed_ -= job.node_count;
    decision_.starts.push_back(std::move(start));
  }

  void PutLast(const std::vector<std::string>& nodes) {
    std::stable_partition(free_.begin(), free_.end(), [&](const std::string& node) {
      return std::find(nodes.begin(), nodes.end(), node) == nodes.end();
    });
  }

  void Reserve(const PendingJob& head) {
    head_ = &head;
    head_start_ = profile_.Earliest(head.node_count, head.time_limit);
    never_needed_ = load_.total - head.node_count;
    profile_.Take(head.node_count, head_start_, head_start_ + head.time_limit);
  }

  void Explain() {
    int ahead = 0;
    size_t forecasts = 0;
    bool known = true;  // behind a job whose start is not known, no other is
    for (const PendingJob* job : waiting_) {
      Wait wait{job->id, "", std::nullopt};
      if (job->node_count > load_.total) {
        wait.reason = TooLarge(job->node_count, load_);
        decision_.waits.push_back(std::move(wait));
        continue;
      }
      wait.reason = job == head_ ? WaitsForNodes(*job, load_)
                                 : WaitsBehind(*job, *head_, head_start_, ahead, load_);
      if (known && forecasts++ < kMostForecasts) wait.expected_start = Forecast(*job);
      known = wait.expected_start.has_value();
      decision_.waits.push_back(std::move(wait));
      ++ahead;
    }
  }

  // When the job starts if all before it keep to their limits; takes its place in the profile.
  std::optional<absl::Time> Forecast(const PendingJob& job) {
    absl::Time start = head_start_;
    if (&job != head_) {
      start = profile_.Earliest(job.node_count, job.time_limit);
      profile_.Take(job.node_count, start, start + job.time_limit);
    }
    if (start == absl::InfiniteFuture()) return std::nullopt;
    return start;
  }

  const absl::Time now_;
  Profile profile_;
  ClusterLoad load_;
  std::vector<std::string> free_;
  const PendingJob* head_ = nullptr;
  absl::Time head_start_ = absl::InfiniteFuture();
  int never_needed_ = 0;  // nodes beyond those of the head that no endless job has taken
  std::vector<const PendingJob*> waiting_;
  Decision decision_;
};

}  // namespace

bool GoesFirst(const PendingJob& a, const PendingJob& b) {
  const int first = -static_cast<int>(a.priority), second = -static_cast<int>(b.priority);
  return std::tie(first, a.sequence, a.id) < std::tie(second, b.sequence, b.id);
}

std::vector<Start> StartsOf(const WaitingJobs& waiting, const std::vector<RunningJob>& running,
                            const std::vector<std::string>& nodes, absl::Time now, int cordoned) {
  return Pass(running, nodes, cordoned, now).Starts(waiting);
}

Decision Schedule(const std::vector<PendingJob>& pending, const std::vector<RunningJob>& running,
                  const std::vector<std::string>& nodes, absl::Time now, int cordoned) {
  const std::vector<PendingJob> queue = InQueueOrder(pending);
  return Pass(running, nodes, cordoned, now).Run(queue);
}

}  // namespace tutti::scheduler
