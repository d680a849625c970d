#include "platform/service/retention/pruner.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/deadline.h"
#include "base/machine/machine.h"
#include "base/status.h"
#include "base/text/binary_size.h"
#include "base/threads/start_thread.h"
#include "platform/service/retention/clock_jump.h"
#include "spec/site/site.h"

namespace tutti::service {
namespace {

// A service that is started anew each day comes to it, too, and none has it beside its start.
constexpr absl::Duration kFirstLook = absl::Minutes(1);
constexpr char kPruneProblem[] = "what is kept no longer cannot be removed";

// With a folder that is looked for, and with one that was there and has much to be read.
constexpr absl::Duration kPatienceToAnswer = absl::Seconds(2);
constexpr absl::Duration kPatienceWithPlace = absl::Minutes(10);
constexpr absl::Duration kLookAtEnding = absl::Milliseconds(100);
constexpr char kHere[] = "";  // the place
constexpr char kClockFile[] = "retention_clock";

bool IsOfJobs(KeptKind kind) { return kind == KeptKind::kLogs || kind == KeptKind::kResults; }

// Returns what is to be kept by that request.
spec::Retention KeepBy(const Pruning& how, const spec::Retention& of_site) {
  if (!how.environments_unused_for) return of_site;
  const spec::KeepFor all;
  spec::Retention keep{.snapshots = all, .data = all, .environments = all, .images = all};
  keep.environments.age = how.environments_unused_for;
  return keep;
}

std::string PlaceProblem(const std::string& place) {
  return absl::StrCat(
      "what is kept ",
      place == kHere ? "on this machine" : absl::StrCat("in the folder of compute ", place),
      " cannot be looked at");
}

}  // namespace

absl::StatusOr<std::vector<Removal>> Pruner::ToRemoveOf(const spec::Retention& keep) {
  const InUse in_use = WhatIsInUse(state_, table_);
  // Limits hold for each place by itself: each has a disk of its own.
  std::map<std::pair<KeptKind, std::string>, std::vector<Kept>> groups;
  for (const auto& [name, place] : places_) {
    TUTTI_ASSIGN_OR_RETURN(std::vector<Kept> kept, ListAt(name, place, keep, in_use));
    for (Kept& one : kept) groups[{one.kind, one.place}].push_back(std::move(one));
  }
  std::vector<Removal> all;
  for (auto& [which, group] : groups) {
    const spec::KeepFor& limit = LimitOf(keep, which.first);
    for (Removal& removal : ToRemove(std::move(group), limit, state_.clock->Now())) {
      if (removal.what.kind == KeptKind::kImages && !removal.what.place.empty()) {
        absl::StrAppend(&removal.why, "; the next job on that node removes it");
      }
      all.push_back(std::move(removal));
    }
  }
  return all;
}

absl::StatusOr<std::vector<Kept>> Pruner::ListAt(const std::string& name,
                                                 const std::shared_ptr<const Place>& place,
                                                 const spec::Retention& keep, const InUse& in_use) {
  const auto list = std::make_shared<absl::StatusOr<std::vector<Kept>>>(std::vector<Kept>());
  const bool answers = DoWithin(name, kPatienceWithPlace, [=, this] {
    *list = place->List(keep, in_use);
    if (name == kHere) *list = WithJobs(std::move(**list), keep, in_use);
  });
  if (!answers) return std::vector<Kept>();
  return std::move(*list);
}

absl::StatusOr<std::vector<Kept>> Pruner::WithJobs(std::vector<Kept> kept,
                                                   const spec::Retention& keep,
                                                   const InUse& in_use) const {
  for (const KeptKind kind : {KeptKind::kLogs, KeptKind::kResults}) {
    TUTTI_ASSIGN_OR_RETURN(std::vector<Kept> of_jobs,
                           jobs_.List(kind, LimitOf(keep, kind), in_use));
    std::move(of_jobs.begin(), of_jobs.end(), std::back_inserter(kept));
  }
  return kept;
}

std::vector<Kept> Pruner::Place::List(const spec::Retention& keep, const InUse& in_use) const {
  std::vector<Kept> kept;
  for (const KeptKind kind : caches.kinds()) {
    const spec::KeepFor& limit = LimitOf(keep, kind);
    if (!limit.age && !limit.size) continue;
    std::vector<Kept> of_kind = caches.List(kind, in_use);
    std::move(of_kind.begin(), of_kind.end(), std::back_inserter(kept));
  }
  if (!keep.images.age && !keep.images.size) return kept;
  std::vector<Kept> of_podman = images.List(in_use);
  std::move(of_podman.begin(), of_podman.end(), std::back_inserter(kept));
  return kept;
}

absl::StatusOr<bool> Pruner::Place::Remove(const Kept& kept) const {
  return kept.kind == KeptKind::kImages ? images.Remove(kept) : caches.Remove(kept);
}

absl::Status Pruner::CheckClockNow(bool is_right) const {
  return CheckClock(state_.options.directory / kClockFile,
                    {base::BootId(), state_.clock->SinceBoot(), state_.clock->Now()}, is_right);
}

void Pruner::FindPlaces() {
  places_.clear();
  if (Answers(kHere, here_)) places_[kHere] = here_;
  Places clusters;
  for (const auto& [compute, engine] : state_.engines.clusters) {
    const std::filesystem::path root = engine->SharedFolder();
    if (root.empty()) continue;
    // One that is known stays, with the sizes that it has found.
    const auto known = clusters_.find(compute);
    const bool is_known = known != clusters_.end() && known->second->caches.root() == root;
    const auto& place = clusters[compute] =
        is_known ? known->second : std::make_shared<const Place>(state_, compute, root);
    if (Answers(compute, place)) places_[compute] = place;
  }
  clusters_ = std::move(clusters);
}

bool Pruner::Answers(const std::string& name, const std::shared_ptr<const Place>& place) {
  return DoWithin(name, kPatienceToAnswer, [this, name, place] {
    place->caches.Ask();
    if (name == kHere) jobs_.Ask();
  });
}

absl::Status Pruner::CheckFolders(const std::string& place) const {
  std::filesystem::path root = state_.options.directory;
  if (place != kHere) root = state_.engines.Of(place)->SharedFolder();
  TUTTI_RETURN_IF_ERROR(state_.folders.Check(root));
  for (const char* const folder : {"jobs", "snapshots", "data", "environments"}) {
    TUTTI_RETURN_IF_ERROR(state_.folders.Check(root / folder));
  }
  return absl::OkStatus();
}

bool Pruner::DoWithin(const std::string& place, absl::Duration patience,
                      std::function<void()> work) {
  // What hangs is not waited for twice.
  if (absl::Status known = CheckFolders(place); !known.ok()) {
    StateLock lock(state_);
    state_.problems.Note(PlaceProblem(place), known);
    return false;
  }
  if (state_.retention_work.Hangs(place, patience)) return false;
  const auto done = std::make_shared<absl::Notification>();
  state_.retention_work.Do(place, [done, work = std::move(work)] {
    const absl::Cleanup notify = [&] { done->Notify(); };
    work();
  });
  const base::Deadline deadline = base::Deadline::After(patience);
  while (!done->WaitForNotificationWithTimeout(kLookAtEnding)) {
    if (state_.ending || deadline.Expired() || !CheckFolders(place).ok()) break;
  }
  const bool is_late = !done->HasBeenNotified() && !state_.ending;
  StateLock lock(state_);
  state_.problems.Note(PlaceProblem(place), is_late
                                                ? absl::DeadlineExceededError("it does not answer")
                                                : absl::OkStatus());
  return done->HasBeenNotified();
}

absl::StatusOr<bool> Pruner::RemoveWhereItLies(const Kept& what) {
  if (IsOfJobs(what.kind)) return jobs_.Remove(what);
  const std::string name = what.place.substr(0, what.place.find('/'));
  const auto removed = std::make_shared<absl::StatusOr<bool>>(false);
  const bool answers =
      DoWithin(name, kPatienceWithPlace,
               [removed, what, place = places_.at(name)] { *removed = place->Remove(what); });
  return answers ? *removed : absl::StatusOr<bool>(false);
}

absl::StatusOr<std::vector<Removal>> Pruner::Prune(const Pruning& how) {
  absl::MutexLock lock(&one_at_a_time_);
  if (!how.dry_run) TUTTI_RETURN_IF_ERROR(CheckClockNow(how.clock_is_right));
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(state_.options.directory));
  TUTTI_RETURN_IF_ERROR(NoteThatUseIsMarked(state_.options.directory));
  FindPlaces();
  for (const auto& [name, place] : how.dry_run ? Places() : places_) Resume(name, place);
  TUTTI_ASSIGN_OR_RETURN(std::vector<Removal> removals, ToRemoveOf(KeepBy(how, site.retention)));
  if (how.environments_unused_for) {
    // "unused for 41 days (retention.environments.age: 30 days)": that is not what decided.
    for (Removal& one : removals) one.why.resize(std::min(one.why.find(" ("), one.why.size()));
  }
  if (how.dry_run) return removals;
  const absl::Status forgotten = secrets_.ForgetOldSignatures();
  const absl::Status unnamed = state_.models.RemoveOld();
  {
    StateLock state_lock(state_);
    state_.problems.Note("old signatures of addresses cannot be forgotten", forgotten);
    state_.problems.Note("what no registered model has cannot be removed", unnamed);
  }
  std::vector<Removal> removed;
  for (Removal& one : removals) {
    if (Remove(one)) removed.push_back(std::move(one));
  }
  return removed;
}

void Pruner::Resume(const std::string& name, const std::shared_ptr<const Place>& place) {
  DoWithin(name, kPatienceWithPlace, [this, name, place] {
    place->caches.Resume();
    if (name == kHere) jobs_.Resume();
  });
}

bool Pruner::Remove(const Removal& removal) {
  if (state_.ending) return false;
  const Kept& what = removal.what;
  const auto removed = RemoveWhereItLies(what);
  const std::string name =
      absl::StrCat(Name(what.kind), " ", what.name, what.place.empty() ? "" : " of ", what.place);
  if (removed.ok() && *removed) {
    spdlog::info("{} removed ({}): {}", name, base::BinarySize(what.bytes), removal.why);
  }
  StateLock lock(state_);
  state_.problems.Note(absl::StrCat(name, " cannot be removed"), removed.status());
  return removed.ok() && *removed;
}

void Pruner::Run() {
  thread_ = base::StartThread([this] { Loop(); });
}

void Pruner::Loop() {
  absl::Duration wait = std::min(kFirstLook, state_.options.retention_interval);
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), wait)) return;
    }
    const absl::Status pruned = Prune({}).status();
    StateLock lock(state_);
    state_.problems.Note(kPruneProblem, pruned);
    wait = state_.options.retention_interval;
  }
}

void Pruner::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace tutti::service
