// Jobs' wishes for the nodes that have their data: made when a job is submitted, and lifted when
// Slurm has not started it for some seconds (data_wish.h).
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/engine/slurm/slurm_engine.h"
#include "platform/engine/slurm/slurm_messages.h"

namespace tutti::engine {
namespace {

using Stage = SlurmAllocation::Stage;

// A job is submitted without a wish rather than held up for it.
constexpr absl::Duration kRoomLimit = absl::Seconds(5);
constexpr absl::Duration kLiftLimit = absl::Seconds(30);
// Slurm refuses it also of a job that has just begun, which the next poll shows.
constexpr int kMostRefusals = 2;

bool AnyOf(const std::vector<std::string>& names, const std::vector<std::string>& others) {
  return std::find_first_of(names.begin(), names.end(), others.begin(), others.end()) !=
         names.end();
}

}  // namespace

std::vector<std::string> SlurmEngine::WithWish(const std::string& id,
                                               std::vector<std::string> sbatch,
                                               const DataWish& wish) {
  std::vector<NodeWithRoom> room;
  if (!wish.nodes.empty()) {
    const std::string& partition = wish.partition;
    const auto told = commands_->Run(
        {"sinfo", partition.empty() ? "--all" : absl::StrCat("--partition=", partition), "--Node",
         "--noheader", absl::StrCat("--format=", kRoomFormat)},
        base::Deadline::After(kRoomLimit), stopping_);
    if (told.ok() && told->exit.ok()) room = ReadRoom(told->out, partition);
  }
  absl::MutexLock lock(&mutex_);
  SlurmAllocation& known = known_.at(id);  // what is uncertain is not released
  const std::vector<std::string> left_out = NodesToLeaveOut(room, wish, NodesWishedFor(id, wish));
  std::optional<std::string> lifts_to;
  if (!left_out.empty()) lifts_to = ExcludedBy(sbatch);
  known.refused_lifts = 0;
  if (!lifts_to && !known.lifts_to) return sbatch;
  // Without the record nobody would lift it after this process.
  const absl::Status noted = known.NoteWish(std::move(lifts_to));
  LogError(noted);
  if (noted.ok()) return Excluding(std::move(sbatch), left_out);
  known.lifts_to.reset();
  return sbatch;
}

int SlurmEngine::NodesWishedFor(const std::string& id, const DataWish& wish) const {
  int count = 0;
  for (const auto& [other, known] : known_) {
    const bool waits =
        known.lifts_to && known.stage != Stage::kEnded && known.job.phase == SlurmPhase::kWaiting;
    if (waits && other != id && AnyOf(wish.nodes, known.wish.nodes)) count += known.node_count();
  }
  return count;
}

void SlurmEngine::LiftWishes() {
  struct Due {
    std::string id;
    int64_t number;
    std::string excluded;
    bool refused;
  };
  std::vector<Due> due;
  {
    absl::MutexLock lock(&mutex_);
    // As for scancel: a number alone may be another job's since.
    if (!slurm_.ok()) return;
    const absl::Duration now = base::SteadyNow();
    for (auto& [id, known] : known_) {
      if (!known.lifts_to || known.stage != Stage::kSubmitted || known.stop) continue;
      const bool has_nodes = known.job.phase != SlurmPhase::kWaiting || known.job.booting;
      if (known.shown && has_nodes) {
        LogError(known.ForgetWish());
        continue;
      }
      if (now < std::max(known.since + options_.preferring, known.next_lift)) continue;
      if (!known.shown) {
        hurry_ = true;
        continue;
      }
      known.next_lift = now + options_.pause;
      due.push_back({id, known.job.id, *known.lifts_to, known.refused_lifts >= kMostRefusals});
    }
  }
  for (const Due& one : due) {
    if (one.refused) {
      Retract(one.id);
    } else {
      LiftWish(one.id, one.number, one.excluded);
    }
  }
}

void SlurmEngine::LiftWish(const std::string& id, int64_t number, const std::string& excluded) {
  const auto result = commands_->Run({"scontrol", "update", absl::StrCat("JobId=", number),
                                      absl::StrCat("ExcNodeList=", excluded)},
                                     base::Deadline::After(kLiftLimit), stopping_);
  if (absl::IsCancelled(result.status())) return;
  absl::MutexLock lock(&mutex_);
  const auto found = known_.find(id);
  if (found == known_.end()) return;
  SlurmAllocation& known = found->second;
  if (result.ok() && result->exit.ok()) {
    spdlog::info("allocation {} may begin on any node: those that have its data are taken", id);
    LogError(known.NoteWish(std::nullopt));
    return;
  }
  spdlog::warn("scontrol: {}",
               result.ok() ? ErrorIn(result->err) : std::string(result.status().message()));
  if (!result.ok() || !MayPass(result->err)) ++known.refused_lifts;
}

void SlurmEngine::Retract(const std::string& id) {
  Cancelled job;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = known_.find(id);
    if (found == known_.end() || found->second.stop) return;
    SlurmAllocation& known = found->second;
    if (known.retracted != known.job.id) {
      // Without the record the end of the Slurm job would be the end of the allocation for an
      // engine that comes now.
      const absl::Status noted = known.NoteRetraction();
      LogError(noted);
      if (!noted.ok()) return;
      spdlog::warn("Slurm lets its job {} not begin on other nodes: {} is to be submitted anew",
                   known.job.id, id);
    }
    job = {known.job.id, known.job.name, known.job.comment, ""};
    hurry_ = true;
  }
  // One that has begun meanwhile goes on.
  Cancel({"scancel", "--state=PENDING"}, std::span(&job, 1));
}

}  // namespace tutti::engine
