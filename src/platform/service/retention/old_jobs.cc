#include "platform/service/retention/old_jobs.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/status.h"
#include "platform/service/retention/caches.h"

namespace tutti::service {
namespace {

constexpr int kPageOfEnded = 1000;
constexpr absl::Duration kLongestSubmission = absl::Hours(1);
constexpr absl::Duration kPatienceWithOldJobs = absl::Seconds(10);

// Its folder's name in a job's.
std::string PartOf(KeptKind kind) { return kind == KeptKind::kLogs ? "logs" : "outputs"; }

KeptKind KindOf(absl::string_view part) {
  return part == "logs" ? KeptKind::kLogs : KeptKind::kResults;
}

bool AnyIn(const std::vector<std::string>& jobs, const std::set<std::string>& in_use) {
  return std::any_of(jobs.begin(), jobs.end(),
                     [&](const std::string& job) { return in_use.contains(job); });
}

}  // namespace

absl::Time OldJobs::LastUse(KeptKind kind, const std::vector<std::string>& jobs) const {
  absl::Time last = absl::InfinitePast();
  for (const std::string& id : jobs) {
    struct stat info = {};
    // If another job takes results of this one, or a user does, this one's folder gets a new time.
    if (kind != KeptKind::kResults || ::stat(state_.files.FolderOf(id).c_str(), &info) != 0) {
      continue;
    }
    last = std::max(last, absl::TimeFromTimespec(info.st_mtim));
  }
  return last;
}

// Returns those whose logs have yet to be brought to a store.
absl::StatusOr<std::set<std::string>> OldJobs::JobsThatOwe(KeptKind kind) const {
  std::set<std::string> ids;
  if (kind != KeptKind::kLogs) return ids;
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::EndedJob> jobs,
                         state_.store->EndedWithPendingLogs());
  for (const store::EndedJob& job : jobs) ids.insert(job.id);
  return ids;
}

absl::StatusOr<Kept> OldJobs::KeptOf(KeptKind kind, const store::EndedJob& job, const InUse& in_use,
                                     const std::set<std::string>& owed) const {
  Kept kept{.kind = kind, .name = job.id, .last_use = job.ended};
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> jobs, state_.store->TreeOf(job.id));
  kept.last_use = std::max(kept.last_use, LastUse(kind, jobs));
  kept.in_use = AnyIn(jobs, in_use.jobs) || AnyIn(jobs, owed);
  {
    absl::MutexLock lock(&mutex_);
    const auto known = bytes_.find({kind, job.id});
    if (known != bytes_.end()) kept.bytes = known->second;
    if (known != bytes_.end()) return kept;
  }
  for (const std::string& id : jobs) {
    kept.bytes += BytesBelow(state_.files.FolderOf(id) / PartOf(kind));
  }
  absl::MutexLock lock(&mutex_);
  bytes_[{kind, job.id}] = kept.bytes;
  return kept;
}

absl::StatusOr<std::vector<Kept>> OldJobs::List(KeptKind kind, const spec::KeepFor& limit,
                                                const InUse& in_use) const {
  std::vector<Kept> list;
  if (!limit.age && !limit.size) return list;
  const absl::Time old = limit.size ? absl::InfiniteFuture() : state_.clock->Now() - *limit.age;
  TUTTI_ASSIGN_OR_RETURN(const std::set<std::string> owed, JobsThatOwe(kind));
  for (int64_t after = 0; !state_.ending;) {
    TUTTI_ASSIGN_OR_RETURN(const std::vector<store::EndedJob> page,
                           state_.store->EndedWith(Name(kind), after, kPageOfEnded));
    if (page.empty()) break;
    after = page.back().sequence;
    for (const store::EndedJob& job : page) {
      if (job.ended >= old || state_.ending) continue;
      const auto kept = KeptOf(kind, job, in_use, owed);
      if (absl::IsNotFound(kept.status())) continue;  // deleted meanwhile
      TUTTI_RETURN_IF_ERROR(kept.status());
      if (kept->bytes > 0) list.push_back(*kept);
    }
  }
  return list;
}

// In the queue of the job's folder, as its deletion is.
absl::StatusOr<bool> OldJobs::Remove(const Kept& kept) const {
  const auto removed = std::make_shared<absl::StatusOr<bool>>(false);
  const bool answers = state_.folder_work.DoWithin(
      kept.name, [this, removed, kept] { *removed = RemoveTree(kept); },
      base::Deadline::After(kPatienceWithOldJobs));
  return answers ? *removed : absl::StatusOr<bool>(false);
}

absl::StatusOr<bool> OldJobs::RemoveTree(const Kept& kept) const {
  const auto jobs = state_.store->TreeOf(kept.name);
  if (absl::IsNotFound(jobs.status())) return false;
  TUTTI_RETURN_IF_ERROR(jobs.status());
  if (kept.kind == KeptKind::kResults) Announce(*jobs);
  const bool used =
      AnyIn(*jobs, WhatIsInUse(state_, table_).jobs) || LastUse(kept.kind, *jobs) > kept.last_use;
  if (used) Withdraw(*jobs);
  if (used) return false;
  const absl::Status retired = Retire(kept.kind, *jobs);
  if (kept.kind == KeptKind::kResults) NoteGone(*jobs);
  TUTTI_RETURN_IF_ERROR(retired);
  absl::MutexLock lock(&mutex_);
  bytes_.erase({kept.kind, kept.name});
  return true;
}

absl::Status OldJobs::Retire(KeptKind kind, const std::vector<std::string>& jobs) const {
  for (const std::string& job : jobs) {
    TUTTI_RETURN_IF_ERROR(state_.files.Retire(job, PartOf(kind)));
  }
  return Finish(kind, jobs);
}

// From here on no job takes them that is not known.
void OldJobs::Announce(const std::vector<std::string>& jobs) const {
  StateLock lock(state_);
  const absl::Duration now = state_.clock->SinceBoot();
  std::erase_if(state_.leaving_results,
                [&](const auto& one) { return now - one.second > kLongestSubmission; });
  for (const std::string& job : jobs) state_.leaving_results[job] = absl::InfiniteDuration();
}

// Also of those that could not be removed: who looks from here on sees what is left.
void OldJobs::NoteGone(const std::vector<std::string>& jobs) const {
  StateLock lock(state_);
  for (const std::string& job : jobs) state_.leaving_results[job] = state_.clock->SinceBoot();
}

void OldJobs::Withdraw(const std::vector<std::string>& jobs) const {
  StateLock lock(state_);
  for (const std::string& job : jobs) state_.leaving_results.erase(job);
}

// They count as removed once that is noted; what is left of them is removed by the next look.
absl::Status OldJobs::Finish(KeptKind kind, const std::vector<std::string>& jobs) const {
  TUTTI_RETURN_IF_ERROR(
      state_.store->NoteRemoved(jobs, {std::string(Name(kind)), state_.clock->Now()}));
  for (const std::string& job : jobs) {
    NoteLeft(job, state_.files.RemoveRetired(job, PartOf(kind), state_.janitor));
  }
  return absl::OkStatus();
}

void OldJobs::NoteLeft(const std::string& job, const absl::Status& removed) const {
  StateLock lock(state_);
  state_.problems.Note(absl::StrCat("old files of job ", job, " cannot be removed"), removed,
                       {.job = job});
}

void OldJobs::Ask() const {
  std::error_code ignored;
  std::filesystem::directory_iterator(state_.files.FolderOf(""), ignored);
}

void OldJobs::Resume() const {
  for (const auto& [job, part] : state_.files.Retired()) {
    state_.folder_work.Do(job, [this, job = job, part = part] {
      const absl::Status noted = Finish(KindOf(part), {job});
      if (!noted.ok()) NoteLeft(job, noted);
    });
  }
}

}  // namespace tutti::service
