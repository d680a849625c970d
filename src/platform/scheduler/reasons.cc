#include "platform/scheduler/reasons.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/binary_size.h"

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

// "2 cores, 8.0 GiB and 1 GPU".
std::string Words(const Resources& part) {
  std::vector<std::string> words = {Count(part.cores, "core", "cores")};
  if (part.memory_bytes > 0) {
    words.push_back(base::BinarySize(static_cast<uint64_t>(part.memory_bytes)));
  }
  if (part.gpus > 0) words.push_back(Count(part.gpus, "GPU", "GPUs"));
  const std::string last = words.back();
  words.pop_back();
  return words.empty() ? last : absl::StrCat(absl::StrJoin(words, ", "), " and ", last);
}

std::string NodesAndFree(const PendingJob& job, int free, const ClusterLoad& load) {
  if (job.part) {
    return absl::StrCat("waits for ", Words(*job.part), " of ", Nodes(job.node_count), ": ", free,
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
std::string TooLargeForANode(const Resources& part, const Resources& most) {
  const auto says = [](const char* key, const std::string& asked, const std::string& has) {
    return absl::StrCat("needs ", asked, " of a node, but no node has more than ", has,
                        ": lower resources.properties.tutti.", key);
  };
  if (part.cores > most.cores) {
    return says("cpus", Count(part.cores, "core", "cores"), absl::StrCat(most.cores));
  }
  if (part.memory_bytes > most.memory_bytes) {
    return says("memory", base::BinarySize(static_cast<uint64_t>(part.memory_bytes)),
                base::BinarySize(static_cast<uint64_t>(most.memory_bytes)));
  }
  if (part.gpus > most.gpus) {
    return says("gpus", Count(part.gpus, "GPU", "GPUs"), absl::StrCat(most.gpus));
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

}  // namespace

std::string TooLarge(const PendingJob& job, int able, const ClusterLoad& load) {
  if (job.node_count <= able + load.cordoned) {
    return absl::StrCat("waits for ", Nodes(job.node_count), ": ", load.cordoned, " of ",
                        load.total + load.cordoned,
                        load.cordoned == 1 ? " is cordoned" : " are cordoned",
                        " (tutti node list says why)");
  }
  if (load.total == 0) return "the cluster has no nodes";
  if (job.part && able == 0) {
    std::string why = TooLargeForANode(*job.part, load.most);
    if (!why.empty()) return why;
  }
  const std::string what = job.part ? absl::StrCat(" with ", Words(*job.part)) : "";
  return absl::StrCat("needs ", Nodes(job.node_count), what, ", but the cluster has only ", able,
                      ": lower resources.instance_count or add nodes");
}

std::string WaitsForNodes(const PendingJob& job, int free, absl::Time start,
                          const ClusterLoad& load) {
  std::string begin = NodesAndFree(job, free, load);
  if (job.part || load.has_parts) return begin + WhenThereIsRoom(start, load.now);
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

}  // namespace tutti::scheduler
