#include "platform/service/retention/pruner.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/text/binary_size.h"
#include "base/threads/start_thread.h"
#include "spec/site/site.h"

namespace tutti::service {
namespace {

// A service that is started anew each day comes to it, too, and none has it beside its start.
constexpr absl::Duration kFirstLook = absl::Minutes(1);
constexpr char kPruneProblem[] = "what is kept no longer cannot be removed";

bool IsOfJobs(KeptKind kind) { return kind == KeptKind::kLogs || kind == KeptKind::kResults; }

}  // namespace

absl::StatusOr<std::vector<Removal>> Pruner::ToRemoveOf(const spec::Retention& keep) {
  const InUse in_use = WhatIsInUse(state_, table_);
  std::vector<Removal> all;
  for (const KeptKind kind : kKeptKinds) {
    const spec::KeepFor& limit = LimitOf(keep, kind);
    if (!limit.age && !limit.size) continue;
    std::vector<Kept> kept;
    if (IsOfJobs(kind)) {
      TUTTI_ASSIGN_OR_RETURN(kept, jobs_.List(kind, limit, in_use));
    } else {
      kept = caches_.List(kind, in_use);
    }
    for (Removal& removal : ToRemove(std::move(kept), limit, state_.clock->Now())) {
      all.push_back(std::move(removal));
    }
  }
  return all;
}

absl::StatusOr<std::vector<Removal>> Pruner::Prune(bool dry_run) {
  absl::MutexLock lock(&one_at_a_time_);
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(state_.options.directory));
  TUTTI_RETURN_IF_ERROR(NoteThatUseIsMarked(state_.options.directory));
  if (!dry_run) {
    caches_.Resume();
    jobs_.Resume();
  }
  TUTTI_ASSIGN_OR_RETURN(std::vector<Removal> removals, ToRemoveOf(site.retention));
  if (!dry_run) std::erase_if(removals, [this](const Removal& one) { return !Remove(one); });
  return removals;
}

bool Pruner::Remove(const Removal& removal) {
  if (state_.ending) return false;
  const Kept& what = removal.what;
  const auto removed = IsOfJobs(what.kind) ? jobs_.Remove(what) : caches_.Remove(what);
  const std::string name = absl::StrCat(Name(what.kind), " ", what.name);
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
    const absl::Status pruned = Prune(/*dry_run=*/false).status();
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
