// Jobs that are deleted, with their logs, outputs and children.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "platform/service/jobs/job_table.h"

namespace tutti::service {

class JobDeletion {
 public:
  JobDeletion(SharedState& state, const JobTable& table) : state_(state), table_(table) {}

  // As Service has it.
  absl::Status Delete(absl::string_view id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Finishes or takes back what an earlier service had begun.
  void RestoreInterrupted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  absl::Status DeleteOne(absl::string_view id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  SharedState& state_;
  const JobTable& table_;
};

}  // namespace tutti::service
