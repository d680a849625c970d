#include "platform/service/jobs/job_deletion.h"

#include <spdlog/spdlog.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::service {

absl::Status JobDeletion::Delete(absl::string_view id) {
  if (table_.Find(id) != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", id, " has not ended: cancel it first"));
  }
  TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record, state_.store->GetJob(id));
  if (!record.job.parent.empty() && state_.store->GetJob(record.job.parent).ok()) {
    return absl::FailedPreconditionError(absl::StrCat("job ", id, " is one of the jobs of ",
                                                      record.job.parent, ": delete that one"));
  }
  return DeleteOne(id);
}

// Children first: what an interrupted delete leaves is a parent with fewer of them.
absl::Status JobDeletion::DeleteOne(absl::string_view id) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::JobRecord> children,
                         state_.store->ChildrenOf(id));
  for (const store::JobRecord& child : children) TUTTI_RETURN_IF_ERROR(DeleteOne(child.job.id));
  TUTTI_RETURN_IF_ERROR(state_.files.Hide(id));
  if (absl::Status deleted = state_.store->DeleteJob(id); !deleted.ok()) {
    const absl::Status restored = state_.files.Restore(id);
    if (!restored.ok()) spdlog::error("job {}: {}", std::string(id), restored.ToString());
    return deleted;
  }
  return state_.files.Remove(id);
}

void JobDeletion::RestoreInterrupted() {
  for (const std::string& job : state_.files.Hidden()) {
    const bool kept = !absl::IsNotFound(state_.store->GetJob(job).status());
    state_.problems.Note(absl::StrCat("an interrupted delete of job ", job, " cannot be finished"),
                         kept ? state_.files.Restore(job) : state_.files.Remove(job), {.job = job});
  }
}

}  // namespace tutti::service
