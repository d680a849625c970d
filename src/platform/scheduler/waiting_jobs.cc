#include "platform/scheduler/waiting_jobs.h"

#include <algorithm>

namespace tutti::scheduler {

void WaitingJobs::Add(PendingJob job) {
  Remove(job.id);
  job.node_count = std::max(job.node_count, 1);
  const Kind kind = KindOf(job);
  const Place place = PlaceOf(job);
  where_[job.id] = {kind, place};
  order_.insert(place);
  lines_[kind].emplace(place, std::move(job));
}

void WaitingJobs::Remove(const std::string& id) {
  const auto found = where_.find(id);
  if (found == where_.end()) return;
  const auto line = lines_.find(found->second.first);
  line->second.erase(found->second.second);
  if (line->second.empty()) lines_.erase(line);
  order_.erase(found->second.second);
  where_.erase(found);
}

std::vector<PendingJob> WaitingJobs::First(size_t most) const {
  std::vector<PendingJob> jobs;
  jobs.reserve(std::min(size(), most));
  std::map<Place, std::pair<Line::const_iterator, Line::const_iterator>> next;
  for (const auto& [kind, line] : lines_) {
    next.emplace(line.begin()->first, std::pair{line.begin(), line.end()});
  }
  while (jobs.size() < most && !next.empty()) {
    auto [at, end] = next.begin()->second;
    next.erase(next.begin());
    jobs.push_back(at->second);
    if (++at != end) next.emplace(at->first, std::pair{at, end});
  }
  for (const auto& [place, line] : next) {
    if (jobs.size() >= 2 * most) break;
    jobs.push_back(line.first->second);
    jobs.back().stands_for_more = true;
  }
  return jobs;
}

std::vector<std::string> WaitingJobs::FirstIds(size_t most) const {
  std::vector<std::string> ids;
  for (auto at = order_.begin(); at != order_.end() && ids.size() < most; ++at) {
    ids.push_back(std::get<std::string>(*at));
  }
  return ids;
}

std::optional<size_t> WaitingJobs::AheadOf(const std::string& id) const {
  const auto found = where_.find(id);
  if (found == where_.end()) return std::nullopt;
  return order_.order_of_key(found->second.second);
}

const WaitingJobs::Kind* WaitingJobs::KindOf(const std::string& id) const {
  const auto found = where_.find(id);
  return found == where_.end() ? nullptr : &found->second.first;
}

Waits::Waits(const std::vector<PendingJob>& told, const std::vector<Wait>& waits) {
  std::unordered_map<std::string, const PendingJob*> more;
  for (const PendingJob& job : told) {
    if (job.stands_for_more) more.emplace(job.id, &job);
  }
  for (const Wait& wait : waits) {
    const auto found = more.find(wait.job_id);
    if (found == more.end()) {
      of_job_.emplace(wait.job_id, wait);
    } else {
      of_kind_.emplace(WaitingJobs::KindOf(*found->second), Wait{"", wait.reason, std::nullopt});
    }
  }
}

const Wait* Waits::Of(const std::string& id, const WaitingJobs& queue) const {
  const WaitingJobs::Kind* const kind = queue.KindOf(id);
  if (kind == nullptr) return nullptr;
  if (all_) return &*all_;
  const auto of_job = of_job_.find(id);
  if (of_job != of_job_.end()) return &of_job->second;
  const auto of_kind = of_kind_.find(*kind);
  return of_kind == of_kind_.end() ? nullptr : &of_kind->second;
}

}  // namespace tutti::scheduler
