#include "platform/service/jobs/job_deletion.h"

#include <spdlog/spdlog.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::service {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(5);  // of who deletes

}  // namespace

absl::Status JobDeletion::Delete(absl::string_view name) {
  const std::string id(name);
  TUTTI_RETURN_IF_ERROR(Begin(id));
  const auto deleted = std::make_shared<absl::Status>();
  const bool in_time = state_.folder_work.DoWithin(
      id, [this, id, deleted] { *deleted = DeleteWithChildren(id); },
      base::Deadline::After(kPatience));
  if (in_time) return *deleted;
  return absl::UnavailableError(
      absl::StrCat("job ", id, " is still being deleted: it is gone once its folder, ",
                   state_.files.FolderOf(id).native(), ", answers"));
}

absl::Status JobDeletion::Begin(const std::string& id) {
  {
    StateLock lock(state_);
    if (table_.Find(id) != nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("job ", id, " has not ended: cancel it first"));
    }
  }
  TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record, state_.store->GetJob(id));
  if (!record.job.parent.empty() && state_.store->GetJob(record.job.parent).ok()) {
    return absl::FailedPreconditionError(absl::StrCat("job ", id, " is one of the jobs of ",
                                                      record.job.parent, ": delete that one"));
  }
  StateLock lock(state_);
  if (under_way_.insert(id).second) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("job ", id, " is being deleted already"));
}

absl::Status JobDeletion::DeleteWithChildren(const std::string& id) {
  const absl::Status deleted = DeleteTree(id);
  StateLock lock(state_);
  under_way_.erase(id);
  return deleted;
}

// After a crash RestoreInterrupted finds them all in the store or none.
absl::Status JobDeletion::DeleteTree(const std::string& id) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> jobs, state_.store->TreeOf(id));
  absl::Status status;
  for (const std::string& job : jobs) status.Update(state_.files.Hide(job));
  if (status.ok()) status = state_.store->DeleteJob(id);
  if (!status.ok()) {
    Restore(jobs);
    return status;
  }
  for (const std::string& job : jobs) status.Update(state_.files.Remove(job, state_.janitor));
  return status;
}

void JobDeletion::Restore(const std::vector<std::string>& jobs) {
  for (const std::string& job : jobs) {
    const absl::Status restored = state_.files.Restore(job);
    if (!restored.ok()) spdlog::error("job {}: {}", job, restored.ToString());
  }
}

void JobDeletion::RestoreInterrupted() {
  state_.files.ResumeRemoval(state_.janitor);
  for (const std::string& job : state_.files.Hidden()) {
    const bool kept = !absl::IsNotFound(state_.store->GetJob(job).status());
    state_.problems.Note(
        absl::StrCat("an interrupted delete of job ", job, " cannot be finished"),
        kept ? state_.files.Restore(job) : state_.files.Remove(job, state_.janitor), {.job = job});
  }
}

}  // namespace tutti::service
