#include "platform/scheduler/scheduler.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "platform/scheduler/node_pool.h"
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

// One pass over the queue. The pool knows what runs, what this pass starts, and the reservation of
// the head: the first job that does not fit.
class Pass {
 public:
  Pass(const std::vector<RunningJob>& running, const std::vector<ClusterNode>& nodes, int cordoned,
       absl::Time now)
      : now_(now), pool_(nodes, now), load_{now, 0, pool_.total(), cordoned, {}} {
    load_.most = pool_.most();
    for (const RunningJob& job : running) {
      NoteRunning(job.id, pool_.Occupy(job), job.expected_end, !job.parts.empty());
    }
  }

  Decision Run(const std::vector<PendingJob>& queue) {
    std::set<WaitingJobs::Kind> stuck;
    for (const PendingJob& job : queue) {
      const bool may_start = pool_.Able(job) >= job.node_count;
      if (may_start && !stuck.contains(WaitingJobs::KindOf(job)) && StartNow(job)) continue;
      waiting_.push_back(&job);
      if (!may_start) continue;
      stuck.insert(WaitingJobs::KindOf(job));
      if (head_ == nullptr) Reserve(job);
    }
    load_.free = pool_.whole();
    Explain();
    return std::move(decision_);
  }

  // Starts what it can of those that wait and of `more`, a line of its own. Only the first waiting
  // job of each line is tried: once it cannot start, neither can those behind it, as nodes only
  // fill up. The first of all that cannot start becomes the head.
  std::vector<Start> Starts(const WaitingJobs& waiting, const WaitingJobs::Line& more = {}) {
    using Position =
        std::pair<WaitingJobs::Line::const_iterator, WaitingJobs::Line::const_iterator>;
    std::map<WaitingJobs::Place, Position> next;
    const auto add = [&](const WaitingJobs::Line& line) {
      const PendingJob& job = line.begin()->second;
      if (pool_.Able(job) >= job.node_count)
        next.emplace(line.begin()->first, Position{line.begin(), line.end()});
    };
    for (const auto& [kind, line] : waiting.lines()) add(line);
    if (!more.empty()) add(more);
    while (pool_.has_room() && !next.empty()) {
      auto [at, end] = next.begin()->second;
      next.erase(next.begin());
      if (!StartNow(at->second)) {
        if (head_ == nullptr) Reserve(at->second);
        continue;
      }
      if (++at != end) next.emplace(at->first, Position{at, end});
    }
    return std::move(decision_.starts);
  }

 private:
  // `whole`: of its nodes, those that nothing else had anything of.
  void NoteRunning(const std::string& id, int whole, absl::Time end, bool is_part) {
    if (whole > 0) load_.running.push_back({id, whole, end});
    load_.has_parts |= is_part;
  }

  bool StartNow(const PendingJob& job) {
    const int whole_before = pool_.whole();
    std::optional<Start> start = pool_.StartNow(job);
    if (!start) return false;
    NoteRunning(job.id, whole_before - pool_.whole(), now_ + job.time_limit, job.part.has_value());
    decision_.starts.push_back(*std::move(start));
    return true;
  }

  void Reserve(const PendingJob& head) {
    head_ = &head;
    head_start_ = pool_.Earliest(head);
    pool_.ReserveAt(head, head_start_);
  }

  void Explain() {
    int ahead = 0;
    size_t forecasts = 0;
    bool known = true;  // behind a job whose start is not known, no other is
    std::map<WaitingJobs::Kind, int> free;
    for (const PendingJob* job : waiting_) {
      Wait wait{job->id, "", std::nullopt};
      if (pool_.Able(*job) < job->node_count) {
        wait.reason = TooLarge(*job, pool_.Able(*job), load_);
        decision_.waits.push_back(std::move(wait));
        continue;
      }
      const auto [of_kind, is_new] = free.emplace(WaitingJobs::KindOf(*job), 0);
      if (is_new) of_kind->second = pool_.FreeFor(*job);
      wait.reason = job == head_
                        ? WaitsForNodes(*job, of_kind->second, head_start_, load_)
                        : WaitsBehind(*job, of_kind->second, *head_, head_start_, ahead, load_);
      if (known && forecasts++ < kMostForecasts) wait.expected_start = Forecast(*job);
      known = wait.expected_start.has_value();
      decision_.waits.push_back(std::move(wait));
      ++ahead;
    }
  }

  // When the job starts if all before it keep to their limits; takes its place from then on.
  std::optional<absl::Time> Forecast(const PendingJob& job) {
    absl::Time start = head_start_;
    if (&job != head_) {
      start = pool_.Earliest(job);
      pool_.ReserveAt(job, start);
    }
    if (start == absl::InfiniteFuture()) return std::nullopt;
    return start;
  }

  const absl::Time now_;
  NodePool pool_;
  ClusterLoad load_;
  const PendingJob* head_ = nullptr;
  absl::Time head_start_ = absl::InfiniteFuture();
  std::vector<const PendingJob*> waiting_;
  Decision decision_;
};

}  // namespace

bool GoesFirst(const PendingJob& a, const PendingJob& b) {
  const int first = -static_cast<int>(a.priority), second = -static_cast<int>(b.priority);
  return std::tie(first, a.sequence, a.id) < std::tie(second, b.sequence, b.id);
}

std::vector<Start> StartsOf(const WaitingJobs& waiting, const std::vector<RunningJob>& running,
                            const std::vector<ClusterNode>& nodes, absl::Time now, int cordoned) {
  return Pass(running, nodes, cordoned, now).Starts(waiting);
}

std::optional<Start> StartAmong(const WaitingJobs& waiting, const PendingJob& job,
                                const std::vector<RunningJob>& running,
                                const std::vector<ClusterNode>& nodes, absl::Time now,
                                int cordoned) {
  WaitingJobs::Line line;
  const auto place = line.emplace(WaitingJobs::PlaceOf(job), job).first;
  place->second.node_count = std::max(job.node_count, 1);
  for (Start& start : Pass(running, nodes, cordoned, now).Starts(waiting, line)) {
    if (start.job_id == job.id) return std::move(start);
  }
  return std::nullopt;
}

Decision Schedule(const std::vector<PendingJob>& pending, const std::vector<RunningJob>& running,
                  const std::vector<ClusterNode>& nodes, absl::Time now, int cordoned) {
  const std::vector<PendingJob> queue = InQueueOrder(pending);
  return Pass(running, nodes, cordoned, now).Run(queue);
}

}  // namespace tutti::scheduler
