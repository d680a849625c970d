// Opens and closes a placed job's logs by tasks, since a disk may let one wait: the job goes on
// meanwhile, and its end is written once all of its output is on the disk, and the models are
// registered that it has asked for.
#pragma once

#include <string>
#include <vector>

#include "platform/service/allocation/effects.h"
#include "platform/service/jobs/job_table.h"

namespace tutti::service {

class JobOutput {
 public:
  JobOutput(SharedState& state, JobTable& table) : state_(state), table_(table) {}

  // Opens the job's logs, if they are not open. Logs that cannot be opened are tried again, since
  // the user may repair their folder; a job that has just begun fails instead.
  void LookAfter(LiveJob& job, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns whether the job's steps are to wait for a moment, as its logs are being opened.
  bool MustAwait(const LiveJob& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns true once the logs are closed and on the disk; until then has that done. `completes`:
  // the job has done its work, so that its models are registered; its gang has notes on those that
  // could not be.
  bool Close(LiveJob& job, bool completes, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  bool MakeRoom();
  void CloseUsage(const std::string& id, const std::shared_ptr<JobUsage>& usage)
      ABSL_LOCKS_EXCLUDED(service_lock);
  void NoteOpened(const std::string& allocation, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(service_lock);
  void NoteClosed(const std::string& allocation, const absl::Status& status,
                  const std::vector<std::string>& notes = {}) ABSL_LOCKS_EXCLUDED(service_lock);

  SharedState& state_;
  JobTable& table_;
};

}  // namespace tutti::service
