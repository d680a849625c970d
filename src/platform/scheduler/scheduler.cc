#include "platform/scheduler/scheduler.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/binary_size.h"
#include "platform/scheduler/node_pool.h"
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

// The functions from here to Pass write the text that tells a user why a job waits.

// A job that runs once this decision is carried out, with the whole nodes that it holds.
struct RunningAllocation {
  std::string id;
  int node_count;
  absl::Time end;
};

struct ClusterLoad {
  absl::Time now;
  int free;      // whole nodes, after this decision's starts
  int total;     // nodes of the cluster that jobs may start on
  int cordoned;  // those besides
  std::vector<RunningAllocation> running;
  bool has_shares = false;  // a job runs on a share of a node
  Resources most = {};      // that a node has, of each
};

std::string Count(int n, absl::string_view one, absl::string_view many) {
  return absl::StrCat(n, " ", n == 1 ? one : many);
}

std::string Nodes(int n) { return Count(n, "node", "nodes"); }

// Names the day only where it is not today.
std::string Clock(absl::Time time, absl::Time now) {
  const absl::TimeZone utc = absl::UTCTimeZone();
  const bool today = absl::ToCivilDay(time, utc) == absl::ToCivilDay(now, utc);
  return absl::FormatTime(today ? "%H:%M UTC" : "%Y-%m-%d %H:%M UTC", time, utc);
}

// "2 cores, 8.0 GiB and 1 GPU".
std::string Words(const Resources& share) {
  std::vector<std::string> words = {Count(share.cores, "core", "cores")};
  if (share.memory_bytes > 0) {
    words.push_back(base::BinarySize(static_cast<uint64_t>(share.memory_bytes)));
  }
  if (share.gpus > 0) words.push_back(Count(share.gpus, "GPU", "GPUs"));
  const std::string last = words.back();
  words.pop_back();
  return words.empty() ? last : absl::StrCat(absl::StrJoin(words, ", "), " and ", last);
}

std::string NodesAndFree(const PendingJob& job, int free, const ClusterLoad& load) {
  if (job.share) {
    return absl::StrCat("waits for ", Words(*job.share), " of ", Nodes(job.node_count), ": ", free,
                        " of ", load.total, free == 1 ? " has them free" : " have them free");
  }
  return absl::StrCat("waits for ", Nodes(job.node_count), ": ", free, " of ", load.total,
                      free == 1 ? " is free" : " are free");
}

// Where jobs share nodes, the end of one need not free any.
std::string WhenThereIsRoom(absl::Time start, absl::Time now) {
  if (start == absl::InfiniteFuture()) return "; jobs without a time limit have the rest";
  if (start <= now + absl::Seconds(1)) return "; jobs there are about to end";
  return absl::StrCat("; by ", Clock(start, now), " there is room");
}

// Says which demand is the first that exceeds `most`, the most that any node has of each resource;
// "" if none does.
std::string TooLargeForANode(const Resources& share, const Resources& most) {
  const auto says = [](const char* key, const std::string& asked, const std::string& has) {
    return absl::StrCat("needs ", asked, " of a node, but no node has more than ", has,
                        ": lower resources.properties.tutti.", key);
  };
  if (share.cores > most.cores) {
    return says("cpus", Count(share.cores, "core", "cores"), absl::StrCat(most.cores));
  }
  if (share.memory_bytes > most.memory_bytes) {
    return says("memory", base::BinarySize(static_cast<uint64_t>(share.memory_bytes)),
                base::BinarySize(static_cast<uint64_t>(most.memory_bytes)));
  }
  if (share.gpus > most.gpus) {
    return says("gpus", Count(share.gpus, "GPU", "GPUs"), absl::StrCat(most.gpus));
  }
  return "";
}

// The gangs whose ends give the job its nodes: those that end first.
std::vector<RunningAllocation> Blockers(const PendingJob& job, const ClusterLoad& load) {
  std::vector<RunningAllocation> blockers = load.running;
  std::stable_sort(
      blockers.begin(), blockers.end(),
      [](const RunningAllocation& a, const RunningAllocation& b) { return a.end < b.end; });
  int free = load.free;
  size_t n = 0;
  while (n < blockers.size() && free < job.node_count) free += blockers[n++].node_count;
  blockers.resize(n);
  return blockers;
}

std::string Names(const std::vector<RunningAllocation>& jobs) {
  if (jobs.size() == 1) return absl::StrCat("job ", jobs[0].id);
  if (jobs.size() == 2) return absl::StrCat("jobs ", jobs[0].id, " and ", jobs[1].id);
  return absl::StrCat(jobs.size(), " jobs");
}

// Says why a job cannot start that needs more nodes than the `able` ones that could ever take it.
std::string TooLarge(const PendingJob& job, int able, const ClusterLoad& load) {
  if (job.node_count <= able + load.cordoned) {
    return absl::StrCat("waits for ", Nodes(job.node_count), ": ", load.cordoned, " of ",
                        load.total + load.cordoned,
                        load.cordoned == 1 ? " is cordoned" : " are cordoned",
                        " (tutti node list says why)");
  }
  if (load.total == 0) return "the cluster has no nodes";
  if (job.share && able == 0) {
    std::string why = TooLargeForANode(*job.share, load.most);
    if (!why.empty()) return why;
  }
  const std::string what = job.share ? absl::StrCat(" with ", Words(*job.share)) : "";
  return absl::StrCat("needs ", Nodes(job.node_count), what, ", but the cluster has only ", able,
                      ": lower resources.instance_count or add nodes");
}

// Says what the first waiting job in the queue waits for, which is to begin at `start`; `free`
// nodes have room for it now.
std::string WaitsForNodes(const PendingJob& job, int free, absl::Time start,
                          const ClusterLoad& load) {
  std::string begin = NodesAndFree(job, free, load);
  if (job.share || load.has_shares) return begin + WhenThereIsRoom(start, load.now);
  const std::vector<RunningAllocation> blockers = Blockers(job, load);
  if (blockers.empty()) return begin;
  const absl::Time end = blockers.back().end;
  const bool one = blockers.size() == 1;
  if (end == absl::InfiniteFuture()) {
    return absl::StrCat(begin, "; job ", blockers.back().id, " has no time limit");
  }
  if (end <= load.now) {
    return absl::StrCat(begin, "; ", Names(blockers), one ? " is" : " are", " about to end");
  }
  return absl::StrCat(begin, "; ", Names(blockers), one ? " runs" : " run", " until at most ",
                      Clock(end, load.now));
}

// Says why a job behind the first waits: `head` waits, and `ahead` jobs in all are before this one.
std::string WaitsBehind(const PendingJob& job, int free, const PendingJob& head,
                        absl::Time head_start, int ahead, const ClusterLoad& load) {
  const std::string begin = NodesAndFree(job, free, load);
  if (free < job.node_count) {
    return absl::StrCat(begin, "; ", ahead, job.stands_for_more ? " or more" : "",
                        ahead == 1 && !job.stands_for_more ? " job is" : " jobs are", " ahead");
  }
  std::string reason = absl::StrCat(begin, ", but to start now would delay job ", head.id);
  if (head_start != absl::InfiniteFuture()) {
    absl::StrAppend(&reason, ", which is to start by ", Clock(head_start, load.now));
  }
  if (job.time_limit == absl::InfiniteDuration()) {
    absl::StrAppend(&reason, "; with a short limits.timeout it could go first");
  }
  return reason;
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
      NoteRunning(job.id, pool_.Occupy(job), job.expected_end, !job.shares.empty());
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
    load_.has_shares |= is_part;
  }

  bool StartNow(const PendingJob& job) {
    const int whole_before = pool_.whole();
    std::optional<Start> start = pool_.StartNow(job);
    if (!start) return false;
    NoteRunning(job.id, whole_before - pool_.whole(), now_ + job.time_limit, job.share.has_value());
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
      wait.starts_by_then = known && job == head_;
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
