#include "platform/launch/ranks/pmix_starter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/launch/mpi/slurm_pmix.h"
#include "platform/launch/node/rank_failure.h"
#include "platform/launch/ranks/direct_starter.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kBetweenCalls = absl::Seconds(1);  // of srun
// Slurm that ends a job ends srun first and tells the launchers at about the same time.
constexpr absl::Duration kTogetherWithSrun = absl::Milliseconds(200);

// Returns why ranks have no place (any more), by how srun ended: Unavailable if it found no
// slurmctld, FailedPrecondition if Slurm has not launched all its tasks, Aborted if one of the
// ranks is the cause.
absl::Status ErrorOf(const StarterProgram::End& end) {
  if (end.ok) return absl::OkStatus();
  if (FoundNoController(end.printed)) return absl::UnavailableError(end.said);
  if (const int rank = RankThatLeftPmix(end.printed); rank >= 0) {
    return RankFailure(absl::StatusCode::kAborted, rank,
                       "left MPI without MPI_Finalize, for which Slurm's PMIx ends the others");
  }
  return absl::Status(
      WasNotLaunched(end.printed) ? absl::StatusCode::kFailedPrecondition
                                  : absl::StatusCode::kInternal,
      absl::StrCat("srun ended with ", end.status, end.said.empty() ? "" : ": ", end.said));
}

}  // namespace

absl::Status PmixStarter::Begin() { return plan().node_index == 0 ? CallSrun() : absl::OkStatus(); }

absl::Status PmixStarter::CallSrun() {
  return StartProgram(SrunCommand(plan(), agreement_.program), SrunEnvironment(context_.facts.own));
}

absl::Duration PmixStarter::UntilNextTask() const {
  const absl::Duration wait = ExternalStarter::UntilNextTask();
  return srun_again_ ? std::min(wait, srun_again_->Remaining()) : wait;
}

void PmixStarter::RunDueTasks() {
  ExternalStarter::RunDueTasks();
  CallSrunAgain();
}

// While slurmctld is away nothing else is lost: the step has not been made.
void PmixStarter::CallSrunAgain() {
  if (!srun_again_ || !srun_again_->Expired()) return;
  srun_again_.reset();
  if (supervisor().ending()) return;
  if (absl::Status called = CallSrun(); !called.ok()) supervisor().Stop(std::move(called));
}

void PmixStarter::HandleMessage(const RankMessage& message) {
  if (message.kind != RankMessage::Kind::kPmixTask) return;
  absl::Status begun =
      supervisor().ending() ? absl::CancelledError("too late") : StartRankOf(message);
  if (begun.ok()) return;
  agreement_.listener->SendEnd(message.rank, {.code = 1});
  if (!supervisor().ending()) supervisor().Stop(std::move(begun));
}

absl::Status PmixStarter::StartRankOf(const RankMessage& message) {
  TUTTI_RETURN_IF_ERROR(ranks().CheckMayBegin(message.rank));
  NodeFacts facts = context_.facts;
  facts.pmix = message.variables;
  TUTTI_RETURN_IF_ERROR(StartOwnRank(context_, message.rank - plan().node().first_rank, facts));
  if (ranks().HasAll()) ExpectNoStart();
  return absl::OkStatus();
}

void PmixStarter::RankEnded(int rank, base::ExitStatus status) {
  agreement_.listener->SendEnd(rank, status);
}

void PmixStarter::ProgramEnded(const StarterProgram::End& end) {
  const bool leaves_some = AwaitsRanks();
  if ((end.ok && !leaves_some) || ranks().AnyFailed() || supervisor().stopped()) return;
  absl::Status error = ErrorOf(end);
  if (absl::IsUnavailable(error) && leaves_some) {
    taken_back_ = FoundNoRunningJob(end.said) ? error : absl::OkStatus();
    srun_again_ = base::Deadline::After(kBetweenCalls);
    return ExpectStartAgain();
  }
  if (!leaves_some && !ranks().AnyRuns()) return;  // all have told how they ended
  if (supervisor().StopIfRequested(kTogetherWithSrun)) return;
  if (end.ok) {
    return supervisor().StopUnlaunched("srun has ended without a place for every rank");
  }
  const bool none_came = leaves_some && ranks().ranks().empty() && !absl::IsAborted(error);
  if (none_came || absl::IsFailedPrecondition(error)) {
    supervisor().StopUnlaunched(error.message());
  } else {
    supervisor().Stop(std::move(error));
  }
}

void PmixStarter::RanksAreMissing(const std::string& within, const std::string& error) {
  supervisor().StopUnlaunched(absl::StrCat(
      "Slurm gave its ranks no place in PMIx (srun --mpi=pmix) within ", within, error));
}

// A slurmctld that was killed and knows an older state ends what it has not begun.
absl::Status PmixStarter::WhyNoneBegan() const {
  if (taken_back_.ok() || !ranks().ranks().empty()) return absl::OkStatus();
  return base::Annotate(taken_back_, "Slurm ended it before its ranks had begun");
}

}  // namespace tutti::launch
