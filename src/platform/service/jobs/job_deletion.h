// JobDeletion deletes jobs with their logs, outputs and children. The folders of all of them are
// hidden first, then the store forgets them in one commit, then their files go, by a thread that
// nobody waits for.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "platform/service/jobs/job_table.h"

namespace tutti::service {

class JobDeletion {
 public:
  JobDeletion(SharedState& state, const JobTable& table) : state_(state), table_(table) {}

  // Does what Service::Delete does.
  absl::Status Delete(absl::string_view id) ABSL_LOCKS_EXCLUDED(service_lock);
  // Finishes or takes back what an earlier service had begun.
  void RestoreInterrupted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  // Begins to delete a job: OK if it has ended, is no other job's child, and is not being deleted;
  // then it is from here on.
  absl::Status Begin(const std::string& id) ABSL_LOCKS_EXCLUDED(service_lock);
  // Deletes it, as a task.
  absl::Status DeleteWithChildren(const std::string& id) ABSL_LOCKS_EXCLUDED(service_lock);
  absl::Status DeleteTree(const std::string& id) ABSL_LOCKS_EXCLUDED(service_lock);
  void Restore(const std::vector<std::string>& jobs) ABSL_LOCKS_EXCLUDED(service_lock);

  SharedState& state_;
  const JobTable& table_;
  std::set<std::string> under_way_ ABSL_GUARDED_BY(service_lock);
};

}  // namespace tutti::service
