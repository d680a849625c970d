#include "platform/scheduler/waiting_jobs.h"

#include <algorithm>

namespace tutti::scheduler {

void WaitingJobs::Add(PendingJob job) {
  Remove(job.id);
  job.node_count = std::max(job.node_count, 1);
  const Kind kind = KindOf(job);
  const Place place = PlaceOf(job);
  where_[job.id] = {kind, place};
  lines_[kind].emplace(place, std::move(job));
}

void WaitingJobs::Remove(const std::string& id) {
  const auto found = where_.find(id);
  if (found == where_.end()) return;
  const auto line = lines_.find(found->second.first);
  line->second.erase(found->second.second);
  if (line->second.empty()) lines_.erase(line);
  where_.erase(found);
}

std::vector<PendingJob> WaitingJobs::InOrder() const {
  std::vector<PendingJob> jobs;
  jobs.reserve(size());
  for (const auto& [kind, line] : lines_) {
    for (const auto& [place, job] : line) jobs.push_back(job);
  }
  std::sort(jobs.begin(), jobs.end(), GoesFirst);
  return jobs;
}

}  // namespace tutti::scheduler
