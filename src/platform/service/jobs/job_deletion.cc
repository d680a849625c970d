#include "platform/service/jobs/job_deletion.h"

#include <spdlog/spdlog.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::service {
namespace {

constexpr absl::Duration kPatienceWithDeletion = absl::Seconds(5);  // of who deletes

}  // namespace

absl::Status JobDeletion::Delete(absl::string_view name) {
  const std::string id(name);
  TUTTI_RETURN_IF_ERROR(Begin(id));
  const auto marked = std::make_shared<absl::Status>(), removed = std::make_shared<absl::Status>();
  const base::Deadline deadline = base::Deadline::After(kPatienceWithDeletion);
  const std::filesystem::path folder = state_.files.FolderOf(id);
  const bool in_time = DoWithin(
      state_, state_.folder_work, id, folder,
      [this, id, marked, removed] { *marked = HideAndMark(id, removed); }, deadline);
  if (!in_time) {
    const absl::Status known = state_.folders.Check(folder);
    return absl::UnavailableError(
        absl::StrCat("job ", id, " is still being deleted: it is gone once its folder, ",
                     folder.native(), ", answers", known.ok() ? "" : "; ", known.message()));
  }
  TUTTI_RETURN_IF_ERROR(*marked);
  // It is gone, and its name is free behind the task that removes its rows.
  const bool is_free = DoWithin(
      state_, state_.folder_work, id, folder, [] {}, deadline);
  return is_free ? *removed : absl::OkStatus();
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

void JobDeletion::NoteEnd(const std::string& id) {
  StateLock lock(state_);
  under_way_.erase(id);
}

// After a crash Resume finds the deletion begun in the store or not.
absl::Status JobDeletion::HideAndMark(const std::string& id,
                                      const std::shared_ptr<absl::Status>& removed) {
  const auto jobs = state_.store->TreeOf(id);
  absl::Status status = jobs.status();
  if (jobs.ok()) {
    ForgetUsage(*jobs);
    for (const std::string& job : *jobs) status.Update(state_.files.Hide(job));
    if (status.ok()) status = state_.store->BeginDeletion(id);
    if (!status.ok()) Restore(*jobs);
  }
  if (!status.ok()) {
    NoteEnd(id);
    return status;
  }
  state_.folder_work.Do(id, [this, id, jobs = *jobs, removed] {
    *removed = RemoveAll(id, jobs);
    NoteEnd(id);
  });
  return status;
}

// What waits to be written would make their folders anew.
void JobDeletion::ForgetUsage(const std::vector<std::string>& jobs) {
  StateLock lock(state_);
  for (const std::string& job : jobs) state_.closing_usage.erase(job);
}

absl::Status JobDeletion::RemoveAll(const std::string& id, const std::vector<std::string>& jobs) {
  absl::Status status;
  for (const std::string& job : jobs) status.Update(state_.files.Remove(job, state_.janitor));
  if (status.ok()) status = state_.store->FinishDeletion(id);
  if (!status.ok()) spdlog::error("job {} is not wholly deleted: {}", id, status.ToString());
  return status;
}

void JobDeletion::Restore(const std::vector<std::string>& jobs) {
  for (const std::string& job : jobs) {
    const absl::Status restored = state_.files.Restore(job);
    if (!restored.ok()) spdlog::error("job {}: {}", job, restored.ToString());
  }
}

void JobDeletion::Resume() {
  const auto unfinished = state_.store->UnfinishedDeletions();
  if (!unfinished.ok()) spdlog::error("deleted jobs: {}", unfinished.status().ToString());
  for (const std::string& id : unfinished.value_or(std::vector<std::string>())) {
    state_.folder_work.Do(id, [this, id] {
      const auto jobs = state_.store->TreeOf(id);
      if (!jobs.ok()) return;
      RemoveAll(id, *jobs).IgnoreError();  // it is logged, and the next start tries again
    });
  }
  state_.listing_work.Do("jobs", [this] { SettleHidden(); });
}

// In the queue of its root a job is not being deleted meanwhile. What is gone is settled at once:
// its name may be another's later.
void JobDeletion::SettleHidden() {
  state_.files.ResumeRemoval(state_.janitor, [this](const std::string& allocation) {
    StateLock lock(state_);
    return table_.FindByAllocation(allocation) == nullptr;
  });
  for (const std::string& job : state_.files.Hidden()) {
    if (const std::optional<std::string> root = RootOf(job)) {
      state_.folder_work.Do(*root, [this, job] { Settle(job, !RootOf(job)); });
    } else {
      Settle(job, /*is_gone=*/true);
    }
  }
}

void JobDeletion::Settle(const std::string& job, bool is_gone) {
  const absl::Status status =
      is_gone ? state_.files.Remove(job, state_.janitor) : state_.files.Restore(job);
  StateLock lock(state_);
  state_.problems.Note(absl::StrCat("an interrupted delete of job ", job, " cannot be finished"),
                       status, {.job = job});
}

// A child of one that is marked is still found.
std::optional<std::string> JobDeletion::RootOf(const std::string& job) {
  std::string root = job;
  while (true) {
    const auto record = state_.store->GetJob(root);
    if (absl::IsNotFound(record.status())) return std::nullopt;
    if (!record.ok() || record->job.parent.empty()) return root;
    root = record->job.parent;
  }
}

}  // namespace tutti::service
