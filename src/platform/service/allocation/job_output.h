// Opens and closes a placed job's logs by tasks, since a disk may let one wait: the job goes on
// meanwhile, and its end is written once all of its output is on the disk.
#pragma once

#include <string>

#include "platform/service/allocation/effects.h"
#include "platform/service/jobs/job_table.h"

namespace tutti::service {

class JobOutput {
 public:
  JobOutput(SharedState& state, JobTable& table) : state_(state), table_(table) {}

  // Opens them, if they are not open. Those that cannot be are tried again: their user may have
  // repaired them. A job that has just begun fails then.
  void LookAfter(LiveJob& job, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // True once they are closed and on the disk; else has that done.
  bool Close(LiveJob& job, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  bool MakeRoom();
  void NoteOpened(const std::string& allocation, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(service_lock);
  void NoteClosed(const std::string& allocation, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(service_lock);

  SharedState& state_;
  JobTable& table_;
};

}  // namespace tutti::service
