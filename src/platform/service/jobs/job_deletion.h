// JobDeletion deletes jobs with their logs, outputs and children. The folders of all of them are
// hidden first, then the store marks the job, from where on it is gone, then their folders are
// taken away, and then the rows of all of them go, a few at a time. The files are removed by a
// thread that nobody waits for.
//
// Invariant: while a folder is hidden its job's row is there, and so its name is taken.
#pragma once

#include <memory>
#include <optional>
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
  // Finishes, by tasks, what an earlier service had marked, and takes back what it had only hidden:
  // the folder of jobs may be on a server that is away.
  void Resume() ABSL_LOCKS_EXCLUDED(service_lock);

 private:
  // Begins to delete a job: OK if it has ended, is no other job's child, and is not being deleted;
  // then it is from here on.
  absl::Status Begin(const std::string& id) ABSL_LOCKS_EXCLUDED(service_lock);
  // Has all folders hidden and the job marked, as a task; OK: it is gone. Another task, behind it
  // in its queue, does the rest, what comes of which goes to `removed`.
  absl::Status HideAndMark(const std::string& id, const std::shared_ptr<absl::Status>& removed)
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::Status RemoveAll(const std::string& id, const std::vector<std::string>& jobs);
  // Lists the folder of jobs.
  void SettleHidden() ABSL_LOCKS_EXCLUDED(service_lock);
  // Restores the job's hidden folder, or removes it if the job is gone; or says why not.
  void Settle(const std::string& job, bool is_gone) ABSL_LOCKS_EXCLUDED(service_lock);
  // Returns the job whose Delete would delete this one too: it names the queue of that work.
  // Nothing if one of them is deleted or marked.
  std::optional<std::string> RootOf(const std::string& job);
  void NoteEnd(const std::string& id) ABSL_LOCKS_EXCLUDED(service_lock);
  void ForgetUsage(const std::vector<std::string>& jobs) ABSL_LOCKS_EXCLUDED(service_lock);
  void Restore(const std::vector<std::string>& jobs) ABSL_LOCKS_EXCLUDED(service_lock);

  SharedState& state_;
  const JobTable& table_;
  std::set<std::string> under_way_ ABSL_GUARDED_BY(service_lock);
};

}  // namespace tutti::service
