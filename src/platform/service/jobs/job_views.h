// JobViews shows jobs to users: one, or a list of very many. Those that have not ended are in
// memory; of the others the store is asked, without the service's lock. Takes that lock to look at
// the jobs in memory, but where a function says otherwise.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/service/attempt/gang.h"
#include "platform/service/jobs/job_status.h"
#include "platform/service/jobs/job_table.h"

namespace tutti::service {

class JobViews {
 public:
  JobViews(SharedState& state, const JobTable& table) : state_(state), table_(table) {}

  // Return what the functions of Service of these names return.
  absl::StatusOr<JobStatus> Get(absl::string_view id) const ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<std::string> FormerOf(const store::Job& job) const;
  absl::StatusOr<std::vector<JobStatus>> List(const store::JobFilter& filter) const
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<std::vector<JobSummary>> ListSummaries(const store::JobFilter& filter) const
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<EventPage> EventsBefore(absl::string_view id, int64_t before, int limit) const;
  absl::StatusOr<std::vector<RankState>> RanksOf(absl::string_view id,
                                                 std::optional<int> only) const
      ABSL_LOCKS_EXCLUDED(service_lock);

  std::vector<ComputeQueue> ListQueues(size_t most) const ABSL_LOCKS_EXCLUDED(service_lock);

  // Call under the lock.
  JobStatus StatusOf(const store::JobRecord& record) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Adds what only memory knows of a job that has not ended.
  void AddLive(JobStatus& status) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  std::optional<QueuePlace> PlaceOf(const LiveJob& job) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns the jobs of clusters that have no nodes yet, by compute; the ids of the first `most`.
  std::map<std::string, ComputeQueue> ClusterQueues(size_t most) const
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Returns nothing if the job has ended.
  std::optional<std::vector<RankState>> RanksOfLive(absl::string_view id) const
      ABSL_LOCKS_EXCLUDED(service_lock);
  JobSummary SummaryOf(const LiveJob& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Summarizes the jobs of `page` that have not ended and that the filter wants. The sequences of
  // those that have ended are added to `ended`.
  std::vector<JobSummary> LiveSummaries(const std::vector<int64_t>& page,
                                        const store::JobFilter& filter,
                                        std::vector<int64_t>& ended) const
      ABSL_LOCKS_EXCLUDED(service_lock);

  SharedState& state_;
  const JobTable& table_;
};

}  // namespace tutti::service
