#include "platform/scheduler/reasons.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tutti::scheduler {
namespace {

std::string Count(int n, absl::string_view one, absl::string_view many) {
  return absl::StrCat(n, " ", n == 1 ? one : many);
}

std::string Nodes(int n) { return Count(n, "node", "nodes"); }

// The day only where it is not today.
std::string Clock(absl::Time time, absl::Time now) {
  const absl::TimeZone utc = absl::UTCTimeZone();
  const bool today = absl::ToCivilDay(time, utc) == absl::ToCivilDay(now, utc);
  return absl::FormatTime(today ? "%H:%M UTC" : "%Y-%m-%d %H:%M UTC", time, utc);
}

std::string NodesAndFree(const PendingJob& job, const ClusterLoad& load) {
  return absl::StrCat("waits for ", Nodes(job.node_count), ": ", load.free, " of ", load.total,
                      load.free == 1 ? " is free" : " are free");
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

}  // namespace

std::string TooLarge(int node_count, const ClusterLoad& load) {
  if (node_count <= load.total + load.cordoned) {
    return absl::StrCat(
        "waits for ", Nodes(node_count), ": ", load.cordoned, " of ", load.total + load.cordoned,
        load.cordoned == 1 ? " is cordoned" : " are cordoned", " (tutti node list says why)");
  }
  if (load.total == 0) return "the cluster has no nodes";
  return absl::StrCat("needs ", Nodes(node_count), ", but the cluster has only ", load.total,
                      ": lower resources.instance_count or add nodes");
}

std::string WaitsForNodes(const PendingJob& job, const ClusterLoad& load) {
  const std::string begin = NodesAndFree(job, load);
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

std::string WaitsBehind(const PendingJob& job, const PendingJob& head, absl::Time head_start,
                        int ahead, const ClusterLoad& load) {
  const std::string begin = NodesAndFree(job, load);
  if (load.free < job.node_count) {
    return absl::StrCat(begin, "; ", Count(ahead, "job is", "jobs are"), " ahead");
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

}  // namespace tutti::scheduler
