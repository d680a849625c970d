#include "platform/service/attempt/next_step.h"

#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tutti::service {
namespace {

using store::JobState;

constexpr std::array<absl::string_view, 6> kCauses = {"none",     "ended",     "failure",
                                                      "canceled", "timed_out", "served"};
// Workers have this long after the chief, to end by themselves.
constexpr absl::Duration kGraceAfterChief = absl::Seconds(5);

// The rank that fails first has this long to end: its peers may see it close its connections and
// be gone before it has said why.
constexpr absl::Duration kGraceOfFirstFailure = absl::Seconds(2);

std::string Count(int n, absl::string_view one, absl::string_view many) {
  return absl::StrCat(n, " ", n == 1 ? one : many);
}

std::string Processes(const JobNow& job) { return Count(job.world_size, "process", "processes"); }

// The end of rank 0, if that was with 0, in a job with servers.
std::optional<RankExit> ChiefEndedWell(const JobNow& job, const GangEnd& end) {
  if (job.servers == 0) return std::nullopt;
  for (const RankExit& exit : end.exits) {
    if (exit.rank == 0 && exit.ok()) return exit;
  }
  return std::nullopt;
}

// Whether the chief has ended well, and the workers too, or they have had their time.
bool IsServed(const JobNow& job, const Gang& gang, absl::Duration now) {
  if (job.servers == 0) return false;
  const GangEnd end = gang.End();
  const std::optional<RankExit> done = ChiefEndedWell(job, end);
  if (!done) return false;
  const int workers = job.world_size - job.servers;
  const auto ended = std::count_if(end.exits.begin(), end.exits.end(),
                                   [&](const RankExit& exit) { return exit.rank < workers; });
  return ended == workers || now > done->heard + kGraceAfterChief;
}

// How the gang has ended so far. In a job with servers nothing counts that comes after
// its chief has ended well: workers find their servers gone, and servers are told to end.
GangEnd EndThatCounts(const JobNow& job, const Gang& gang) {
  GangEnd end = gang.End();
  end.judged = job.judged;
  end.verdict = job.verdict;
  end.lost = job.lost;
  end.disk_full = job.disk_full;
  const std::optional<RankExit> done = ChiefEndedWell(job, end);
  if (done) {
    std::erase_if(end.exits, [&](const RankExit& exit) { return exit.time > done->time; });
  }
  return end;
}

// For a moment.
bool CauseMayCome(const Diagnosis& failure, const Gang& gang, absl::Duration now) {
  return failure.unexplained_since && !gang.AllExited() &&
         now - *failure.unexplained_since < kGraceOfFirstFailure;
}

constexpr absl::string_view kNotes = "; note: ";  // before them, as clients know

std::string WithNotes(std::string line, const JobNow& job, const Gang& gang) {
  std::set<std::string> notes = gang.end_notes();
  if (!job.note.empty()) notes.insert(job.note);
  return notes.empty() ? line : absl::StrCat(line, kNotes, absl::StrJoin(notes, "; "));
}

// Nothing while the cluster may yet say that the job is not at fault.
std::optional<Step> EndOf(const JobNow& job, const Gang& gang) {
  GangEnd end = EndThatCounts(job, gang);
  end.time_limit = job.time_limit;
  end.mpi = job.mpi;
  end.timed_out = job.cause == Cause::kTimedOut;
  if (job.cause == Cause::kCanceled) {
    return Step{JobState::kCanceled, WithNotes("canceled", job, gang), job.cause};
  }
  Diagnosis diagnosis = Diagnose(end);
  if (diagnosis.verdict_counts && job.verdict_may_come) return std::nullopt;
  if (diagnosis.failed()) {
    return Step{JobState::kFailed,   WithNotes(diagnosis.line, job, gang),
                job.cause,           std::move(diagnosis.failures),
                diagnosis.lost_node, diagnosis.ran_nothing,
                diagnosis.disk_full, diagnosis.filled_by_job};
  }
  if (job.cause == Cause::kServed) {
    return Step{
        JobState::kCompleted,
        WithNotes(absl::StrCat(job.server_words.chief, " ended with exit code 0"), job, gang),
        job.cause};
  }
  const std::string all = job.world_size == 1 ? "its process ended with exit code 0"
                                              : absl::StrCat("all ", job.world_size,
                                                             " processes ended with exit code 0");
  return Step{JobState::kCompleted, WithNotes(all, job, gang), job.cause};
}

std::optional<Step> Forward(const JobNow& job, const Gang& gang, absl::Duration now) {
  switch (job.state) {
    case JobState::kProvisioning:
      if (!gang.AnyPreparing()) return std::nullopt;
      return Step{JobState::kPreparing,
                  absl::StrCat(job.environment.empty()
                                   ? "putting code and inputs in place on "
                                   : absl::StrCat("putting code, inputs and environment ",
                                                  job.environment, " in place on "),
                               Count(job.node_count, "node", "nodes"))};
    case JobState::kPreparing:
      if (!gang.AllPrepared()) return std::nullopt;
      return Step{
          JobState::kStarting,
          absl::StrCat("every node is prepared; starting ", Processes(job),
                       gang.notes().empty() ? "" : kNotes, absl::StrJoin(gang.notes(), "; "))};
    case JobState::kStarting:
      if (!gang.AllStarted()) return std::nullopt;
      return Step{JobState::kRunning,
                  absl::StrCat(Processes(job), " on ", Count(job.node_count, "node", "nodes"))};
    case JobState::kRunning:
      if (IsServed(job, gang, now)) {
        return Step{
            JobState::kFinalizing,
            absl::StrCat(job.server_words.chief, " has ended; ending ", job.server_words.servers),
            Cause::kServed};
      }
      if (!gang.AllExited()) {
        if (job.note.empty() || job.reason == job.note) return std::nullopt;
        return Step{JobState::kRunning, job.note};
      }
      return Step{JobState::kFinalizing, "every process has ended; collecting results",
                  Cause::kEnded};
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::string_view Name(Cause cause) { return kCauses[static_cast<int>(cause)]; }

Cause CauseFromName(absl::string_view name) {
  for (size_t i = 0; i < kCauses.size(); ++i) {
    if (kCauses[i] == name) return static_cast<Cause>(i);
  }
  return Cause::kNone;
}

absl::string_view WithoutNotes(absl::string_view reason) {
  return reason.substr(0, reason.rfind(kNotes));
}

std::optional<Step> NextStep(const JobNow& job, const Gang& gang, absl::Duration now) {
  if (job.state == JobState::kFinalizing) {
    if (gang.AllDone()) return EndOf(job, gang);
    const std::string storing = gang.storing();
    const bool may_take_long = job.cause == Cause::kEnded || job.cause == Cause::kServed;
    if (!may_take_long || storing.empty() || storing == job.reason) return std::nullopt;
    return Step{JobState::kFinalizing, storing, job.cause};
  }
  // Asked at every step of the service, of a thousand nodes too.
  const bool is_well = !gang.AnyEnd() && !job.judged && !job.lost && job.verdict.empty();
  const Diagnosis failure = is_well ? Diagnosis() : Diagnose(EndThatCounts(job, gang));
  if (failure.failed() && !CauseMayCome(failure, gang, now)) {
    const bool alone = gang.AllExited();
    return Step{JobState::kFinalizing,
                absl::StrCat(failure.line, alone ? "" : "; ending the other processes"),
                Cause::kFailure};
  }
  if (now > job.overdue) {
    return Step{JobState::kFinalizing, "its time limit has passed; ending its processes",
                Cause::kTimedOut};
  }
  return Forward(job, gang, now);
}

}  // namespace tutti::service
