#include "platform/launch/node_processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/process/child_process.h"
#include "base/status.h"
#include "platform/launch/delivery/service_link.h"
#include "platform/launch/diagnosis/last_error.h"
#include "platform/launch/environment/slurm_placement.h"
#include "platform/launch/mpi/open_mpi.h"
#include "platform/launch/mpi/slurm_pmix.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/node/program_names.h"

namespace tutti::launch {
namespace {

constexpr size_t kTurn = 1 << 20;  // bytes of one pipe before the others have theirs
constexpr absl::Duration kTogether = absl::Milliseconds(200);
constexpr absl::Duration kSweep = absl::Milliseconds(30);
constexpr absl::Duration kBetweenCalls = absl::Seconds(1);  // of srun
constexpr absl::Duration kRetry = absl::Milliseconds(200);  // of a spool that took no more
constexpr absl::Duration kStarterPatience = absl::Seconds(5);
constexpr absl::Duration kForever = absl::Hours(24 * 365);

}  // namespace

NodeProcesses::NodeProcesses(const spec::LaunchPlan& plan, const LauncherOptions& options,
                             EventLog* events, Spool* spool, Delivery* delivery, Signals* signals,
                             Wakeup* news)
    : plan_(plan),
      options_(options),
      grace_(absl::Seconds(plan.grace_seconds)),
      events_(events),
      spool_(spool),
      delivery_(delivery),
      signals_(signals),
      news_(news),
      time_limit_(base::Deadline::After(
          plan.timeout_seconds > 0 ? absl::Seconds(plan.timeout_seconds) : kForever)),
      place_limit_(base::Deadline::After(options.place_limit)),
      most_processes_(options.most_processes > 0 ? options.most_processes : MostProcesses()),
      limit_(plan, most_processes_),
      memory_(plan.memory_bytes),
      next_memory_look_(base::Deadline::After(memory_.interval())),  // not while ranks begin
      world_(absl::Now()),
      next_world_look_(base::Deadline::After(world_.interval())),
      spool_patience_(options.spool_patience),
      starter_patience_(base::Deadline::After(absl::ZeroDuration())) {}

absl::Status NodeProcesses::StartAll() {
  if (mpi_ != nullptr) return mpi_->Begin(&limit_, &spool_->Mpirun());
  for (int i = 0; i < plan_.node().process_count; ++i) {
    TUTTI_RETURN_IF_ERROR(StartRank(i, facts_));
  }
  return absl::OkStatus();
}

absl::Status NodeProcesses::StartRank(int local_rank, const NodeFacts& facts) {
  TUTTI_ASSIGN_OR_RETURN(auto rank,
                         RankProcess::Start(plan_, local_rank, command_, facts, limit_, spool_));
  NoteBegun(std::move(rank));
  return absl::OkStatus();
}

void NodeProcesses::NoteBegun(std::unique_ptr<RankProcess> rank) {
  events_->Append("started", {{"rank", rank->rank()}, {"pid", rank->pid()}});
  ranks_.push_back(std::move(rank));
}

absl::Status NodeProcesses::Run(const std::string& command, const NodeFacts& facts,
                                std::unique_ptr<MpiStart> mpi) {
  command_ = command;
  facts_ = facts;
  mpi_ = std::move(mpi);
  const absl::Status started = StartAll();
  delivery_->Begin();
  kernel_kills_before_ = KernelOutOfMemoryKills();  // no process needs too much within a moment
  if (!started.ok()) BeginStop(grace_, started);
  while (true) {
    HearMpi();
    ReapChildren();
    HoldAloneLimit();
    if (!AnyRuns() && !ending_) ending_.emplace(options_.leftover_grace);
    if (ending_ && ending_->Continue(Spared()) && !AnyRuns()) break;
    if (ending_ && ending_->IsOverdue()) {
      GiveUpOnRanks();
      break;
    }
    Wait();
    HoldSpoolLimit(PumpOutput());
    HoldTimeLimit();
    HoldPlaceLimit();
    CallSrunAgain();
    HoldMemoryShare();
    HoldWorld();
  }
  DrainOutput();
  return reason_;
}

bool NodeProcesses::AnyRuns() const {
  if (mpi_ != nullptr && mpi_->running()) return true;
  return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return !rank->ended(); });
}

std::vector<RankLeader> NodeProcesses::Leaders() const {
  std::vector<RankLeader> leaders;
  for (const auto& rank : ranks_) {
    if (!rank->ended()) leaders.push_back({rank->rank(), rank->pid()});
  }
  return leaders;
}

std::vector<OutputPipe*> NodeProcesses::Pipes() const {
  std::vector<OutputPipe*> pipes;
  for (const auto& rank : ranks_) pipes.insert(pipes.end(), {&rank->out(), &rank->err()});
  if (mpi_ != nullptr && mpi_->words() != nullptr) pipes.push_back(mpi_->words());
  return pipes;
}

RankProcess* NodeProcesses::RankOf(int rank) {
  const auto found = std::find_if(ranks_.begin(), ranks_.end(),
                                  [rank](const auto& r) { return r->rank() == rank; });
  return found == ranks_.end() ? nullptr : found->get();
}

absl::Status NodeProcesses::CheckComes(int rank) {
  const int local = rank - plan_.node().first_rank;
  if (local >= 0 && local < plan_.node().process_count && RankOf(rank) == nullptr) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      absl::StrCat("rank ", rank, " was placed on node ", plan_.node().name));
}

// Slurm has a place in PMIx for a rank, which is started in it.
absl::Status NodeProcesses::StartInPlace(const RankMessage& news) {
  TUTTI_RETURN_IF_ERROR(CheckComes(news.rank));
  NodeFacts facts = facts_;
  facts.place = news.variables;
  TUTTI_RETURN_IF_ERROR(StartRank(news.rank - plan_.node().first_rank, facts));
  if (!AwaitsPlaces()) mpi_->ExpectNoMore();
  return absl::OkStatus();
}

// A rank that mpirun has started is here to be told what it is.
absl::Status NodeProcesses::Adopt(const RankMessage& news) {
  TUTTI_RETURN_IF_ERROR(CheckComes(news.rank));
  const int local = news.rank - plan_.node().first_rank;
  TUTTI_ASSIGN_OR_RETURN(auto rank, RankProcess::Adopt(plan_, local, news.pid, spool_));
  TUTTI_RETURN_IF_ERROR(mpi_->listener().SendStart(news.client, rank->out().write_fd(),
                                                   rank->err().write_fd(),
                                                   StartOf(plan_, local, command_, facts_)));
  rank->CloseWriteEnds();
  NoteBegun(std::move(rank));
  return absl::OkStatus();
}

void NodeProcesses::HearMpi() {
  if (mpi_ == nullptr) return;
  for (const RankMessage& news : mpi_->Take()) {
    RankProcess* const rank = RankOf(news.rank);
    if (news.kind == RankMessage::Kind::kRank) {
      if (const absl::Status adopted = Adopt(news); !adopted.ok()) BeginStop(grace_, adopted);
    } else if (news.kind == RankMessage::Kind::kPlace) {
      const absl::Status begun = ending_ ? absl::CancelledError("too late") : StartInPlace(news);
      if (!begun.ok()) mpi_->listener().SendEnd(news.rank, {.code = 1});
      if (!begun.ok() && !ending_) BeginStop(grace_, begun);
    } else if (news.kind == RankMessage::Kind::kFailed) {
      const std::string who = news.rank < 0 ? "a rank" : absl::StrCat("rank ", news.rank);
      BeginStop(grace_,
                absl::InternalError(absl::StrCat(who, " could not be started: ", news.reason)));
      // Nothing else will tell of its end.
      if (rank != nullptr && !rank->ended()) {
        Report(rank->End({.code = kNotStarted}, /*stopped=*/true, KilledByKernel()));
      }
    } else if (rank != nullptr && news.kind == RankMessage::Kind::kTerminating) {
      ReapChildren();  // who has ended by now was not told
      rank->ToldToEnd();
    } else if (rank != nullptr && news.kind == RankMessage::Kind::kEnded && !rank->ended()) {
      Report(rank->End(news.status, stopped_ || rank->told(), KilledByKernel()));
    }
  }
}

void NodeProcesses::Report(nlohmann::json exit) {
  failed_ = failed_ || exit.value("code", 0) != 0 || exit.value("signal", 0) != 0;
  events_->Append("exited", std::move(exit));
  delivery_->Wake();
}

KernelKills NodeProcesses::KilledByKernel() const {
  const std::optional<int64_t> now = KernelOutOfMemoryKills();
  if (!now || !kernel_kills_before_) return KernelKills::kUnknown;
  return *now > *kernel_kills_before_ ? KernelKills::kSome : KernelKills::kNone;
}

// What mpirun says of a rank that failed is less than what that rank says itself.
void NodeProcesses::MpiStarterEnded() {
  HearMpi();
  const absl::Status status = mpi_->StarterEnded();
  const bool explained =
      std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->failed(); });
  const bool leaves_some = mpi_->by_pmix() && AwaitsPlaces();
  if ((status.ok() && !leaves_some) || explained || stopped_) return;
  if (absl::IsUnavailable(status) && AwaitsPlaces()) {
    taken_back_ = FoundNoRunningJob(status.message()) ? status : absl::OkStatus();
    srun_again_ = base::Deadline::After(kBetweenCalls);
    mpi_->ExpectAgain();
    return;
  }
  if (mpi_->by_pmix() && !AwaitsPlaces() && !AnyRuns()) return;  // all have told how they ended
  const std::optional<StopRequest> request = AwaitStop(kTogether);
  if (request) return EndAsTold(*request);
  const bool none_came = leaves_some && ranks_.empty() && !absl::IsAborted(status);
  if (status.ok()) {
    StopUnlaunched("srun has ended without a place for every rank");
  } else if (none_came || absl::IsFailedPrecondition(status)) {
    StopUnlaunched(status.message());
  } else {
    BeginStop(grace_, status);
  }
}

// mpirun and its daemon end by themselves when ranks do, and Open MPI's crash if they are told to
// meanwhile. So at first only what is below the ranks is told. srun too ends by itself, and takes
// the ranks' PMIx with it, which they may need as long as they have their grace.
std::set<pid_t> NodeProcesses::Spared() const {
  const pid_t starter = mpi_ == nullptr ? -1 : mpi_->starter();
  if (starter < 0 || ranks_.empty() || starter_patience_.Expired()) return {};
  std::set<pid_t> adopted;
  for (const auto& rank : ranks_) adopted.insert(rank->pid());
  const std::vector<pid_t> starters = base::Descendants(starter, adopted);
  std::set<pid_t> spared(starters.begin(), starters.end());
  spared.insert(starter);
  return spared;
}

absl::Duration NodeProcesses::UntilNextTask() const {
  absl::Duration wait = ending_ ? kSweep : time_limit_.Remaining();
  if (plan_.memory_bytes > 0 && AnyRuns()) wait = std::min(wait, next_memory_look_.Remaining());
  if (AwaitsRanks()) wait = std::min(wait, place_limit_.Remaining());
  if (MayMissWorld()) wait = std::min(wait, next_world_look_.Remaining());
  if (srun_again_) wait = std::min(wait, srun_again_->Remaining());
  if (alone_limit_ && !ending_) wait = std::min(wait, alone_limit_->Remaining());
  return std::min(wait, output_waits_ ? kRetry : absl::Hours(1));
}

void NodeProcesses::Wait() {
  std::vector<pollfd> waiting = {{signals_->fd(), POLLIN, 0}, {news_->fd(), POLLIN, 0}};
  if (mpi_ != nullptr) mpi_->AddTo(waiting);
  for (const OutputPipe* pipe : Pipes()) {
    if (pipe->open() && !output_waits_) waiting.push_back({pipe->read_fd(), POLLIN, 0});
  }
  ::poll(waiting.data(), waiting.size(), base::Deadline::After(UntilNextTask()).RemainingMillis());
  news_->Clear();
  const std::optional<StopRequest> request = signals_->Take();
  if (request) {
    if (!TellsAllAtOnce()) ReapChildren();  // who has ended by now was not stopped
    EndAsTold(*request);
  }
  if (delivery_->gone()) {
    BeginStop(grace_, absl::AbortedError(kNobodyWaits));
  }
}

std::optional<StopRequest> NodeProcesses::AwaitStop(absl::Duration patience) {
  const base::Deadline deadline = base::Deadline::After(patience);
  std::optional<StopRequest> request = signals_->Take();
  while (!request && !deadline.Expired()) {
    pollfd told = {signals_->fd(), POLLIN, 0};
    ::poll(&told, 1, deadline.RemainingMillis());
    request = signals_->Take();
  }
  return request;
}

// A cluster that ends a job tells all its processes, and the launcher maybe last.
bool NodeProcesses::TellsAllAtOnce() const {
  return !stopped_ && IsClusterToEndIt(plan_.directory);
}

// They are told first: who is asked why may take its time.
void NodeProcesses::EndAsTold(const StopRequest& request) {
  NoteToldToEnd(plan_.directory);
  if (stopped_) return;
  const absl::Time now = absl::Now();
  HearMpi();
  BeginStop(request.grace.value_or(grace_), absl::OkStatus());
  ending_->Continue(Spared());
  if (!reason_.ok()) return;
  reason_ = WhyToldToEnd(plan_.directory, now);
  // A slurmctld that was killed and knows an older state ends what it has not begun.
  if (absl::IsCancelled(reason_) && !taken_back_.ok() && ranks_.empty()) {
    events_->Append("unlaunched", nlohmann::json::object());
    reason_ = base::Annotate(taken_back_, "Slurm ended it before its ranks had begun");
  }
}

bool NodeProcesses::PumpOutput() {
  output_waits_ = spool_->Backlog() >= options_.spool_limit;
  if (output_waits_) return false;
  size_t moved = 0;
  for (OutputPipe* pipe : Pipes()) {
    const absl::StatusOr<size_t> n = pipe->Pump(kTurn);
    output_waits_ |= !n.ok();
    moved += n.value_or(0);
  }
  if (moved > 0) delivery_->Wake();
  return output_waits_;
}

void NodeProcesses::HoldSpoolLimit(bool disk_full) {
  if (!spool_patience_.RunsOut(output_waits_, spool_->Acknowledged())) return;
  BeginStop(grace_,
            absl::ResourceExhaustedError(absl::StrCat(
                "the output of its processes could not be kept: the ", disk_full ? "disk" : "spool",
                " of node ", plan_.node().name, " is full (", spool_->Backlog() >> 20,
                " MiB wait for the service, which took nothing for ",
                absl::FormatDuration(options_.spool_patience), ")")));
}

void NodeProcesses::ReapChildren() {
  while (true) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    const auto rank = std::find_if(ranks_.begin(), ranks_.end(),
                                   [&](const auto& r) { return r->pid() == info.si_pid; });
    if (mpi_ != nullptr && mpi_->starter() == info.si_pid) {
      MpiStarterEnded();
    } else if (rank == ranks_.end() || !(*rank)->is_child()) {
      ::waitpid(info.si_pid, nullptr, WNOHANG);  // an orphan that came to the subreaper
    } else {
      if (info.si_status != 0 && !awaited_cluster_ && TellsAllAtOnce()) {
        awaited_cluster_ = true;
        if (const auto request = AwaitStop(kTogether)) EndAsTold(*request);
        if ((*rank)->ended()) continue;
      }
      const nlohmann::json exit = (*rank)->Reap(stopped_ || (*rank)->told(), KilledByKernel());
      const base::ExitStatus status = {.code = exit["code"], .signal = exit["signal"]};
      if (mpi_ != nullptr) mpi_->listener().SendEnd((*rank)->rank(), status);
      Report(exit);
    }
  }
}

void NodeProcesses::HoldTimeLimit() {
  if (!time_limit_.Expired() || !AnyRuns()) return;
  BeginStop(grace_, absl::DeadlineExceededError(
                        absl::StrCat("wall time limit of ", plan_.timeout_seconds, " s reached")));
}

bool NodeProcesses::AwaitsRanks() const {
  const size_t all = plan_.node().process_count;
  return mpi_ != nullptr && !ending_ && ranks_.size() < all;
}

bool NodeProcesses::AwaitsPlaces() const { return AwaitsRanks() && mpi_->by_pmix(); }

// While slurmctld is away nothing else is lost: the step has not been made.
void NodeProcesses::CallSrunAgain() {
  if (!srun_again_ || !srun_again_->Expired()) return;
  srun_again_.reset();
  if (ending_) return;
  const absl::Status begun = mpi_->Begin(&limit_, &spool_->Mpirun());
  if (!begun.ok()) BeginStop(grace_, begun);
}

void NodeProcesses::HoldPlaceLimit() {
  if (!AwaitsRanks() || !place_limit_.Expired()) return;
  std::string said = mpi_->words() == nullptr ? "" : LastError(mpi_->words()->tail());
  if (!said.empty()) said.insert(0, ": ");
  const std::string limit = absl::FormatDuration(options_.place_limit);
  if (mpi_->by_pmix()) {
    return StopUnlaunched(absl::StrCat(
        "Slurm gave its ranks no place in PMIx (srun --mpi=pmix) within ", limit, said));
  }
  BeginStop(grace_, absl::DeadlineExceededError(absl::StrCat(
                        "mpirun started ", ranks_.size(), " of the ", plan_.node().process_count,
                        " ranks of node ", plan_.node().name, " within ", limit, said)));
}

void NodeProcesses::HoldAloneLimit() {
  if (mpi_ == nullptr || ending_ || !mpi_->alone()) return;
  if (!alone_limit_) alone_limit_ = base::Deadline::After(options_.alone_limit);
  if (!alone_limit_->Expired()) return;
  StopUnlaunched(absl::StrCat("the launcher of node ", plan_.nodes.front().name,
                              " has ended, which was to begin its ranks"));
}

void NodeProcesses::HoldMemoryShare() {
  if (plan_.memory_bytes <= 0 || !next_memory_look_.Expired() || !AnyRuns()) return;
  HoldProcessLimit();
  if (const std::optional<MemoryBreach> breach = memory_.Look(Leaders())) {
    for (const auto& rank : ranks_) {
      if (rank->rank() == breach->rank && !rank->ended()) rank->KilledForMemory(breach->reason);
    }
    for (const pid_t pid : breach->processes) ::kill(pid, SIGKILL);
  }
  next_memory_look_ = base::Deadline::After(memory_.interval());
}

// Where there is no cgroup that does it.
void NodeProcesses::HoldProcessLimit() {
  if (limit_.holds()) return;
  const size_t count = base::Descendants(::getpid()).size();
  if (count <= static_cast<size_t>(most_processes_)) return;
  BeginStop(absl::ZeroDuration(),
            absl::ResourceExhaustedError(absl::StrCat("its processes on node ", plan_.node().name,
                                                      " have become ", count, ", more than the ",
                                                      most_processes_, " that a node may have")));
}

bool NodeProcesses::MayMissWorld() const {
  return mpi_ == nullptr && !facts_.pmi.empty() && !ending_;
}

// Rather than n worlds of one, which each do the whole of the work.
void NodeProcesses::HoldWorld() {
  if (!MayMissWorld() || !next_world_look_.Expired()) return;
  const std::optional<WorldOfOne> found = world_.Look(Leaders());
  next_world_look_ = base::Deadline::After(world_.interval());
  if (!found) return;
  const std::string who = found->rank < 0 ? "a rank" : absl::StrCat("rank ", found->rank);
  BeginStop(grace_, absl::FailedPreconditionError(absl::StrCat(
                        who, " has loaded Open MPI (", found->library,
                        ") and would be a world of its own: ",
                        WhyNoOpenMpi(plan_, EnvironmentOf(plan_, 0, facts_)), "; or, if its ranks ",
                        "need no MPI world, environment_variables: {", kMpiVariable, ": direct}")));
}

void NodeProcesses::BeginStop(absl::Duration grace, absl::Status reason) {
  if (stopped_) return;
  if (reason_.ok()) reason_ = std::move(reason);
  stopped_ = AnyRuns();
  for (const auto& rank : ranks_) {
    if (!rank->ended()) rank->NoteBeforeStop();
  }
  if (mpi_ != nullptr) mpi_->ExpectNoMore();
  const bool is_srun = mpi_ != nullptr && mpi_->by_pmix();
  starter_patience_ = base::Deadline::After(is_srun ? grace : std::min(grace, kStarterPatience));
  if (!ending_) ending_.emplace(grace);
}

void NodeProcesses::StopUnlaunched(absl::string_view reason) {
  events_->Append("unlaunched", nlohmann::json::object());
  BeginStop(grace_, absl::UnavailableError(reason));
}

void NodeProcesses::GiveUpOnRanks() {
  const std::vector<pid_t> left = base::Descendants(::getpid());
  const std::string what =
      left.empty() ? "nothing told of their end"
                   : absl::StrCat("process ", absl::StrJoin(left, ", "),
                                  " does not end, by SIGKILL either (it waits for a device or a "
                                  "file system?)");
  for (const auto& rank : ranks_) {
    if (!rank->ended()) Report(rank->End({.signal = SIGKILL}, true, KernelKills::kUnknown));
  }
  const std::string given_up =
      absl::StrCat("its processes on node ", plan_.node().name, " were given up: ", what);
  reason_ = reason_.ok()
                ? absl::InternalError(given_up)
                : absl::Status(reason_.code(), absl::StrCat(reason_.message(), "; ", given_up));
}

// Every writer has ended, or was given up. What is left in the pipes is moved whatever the spool's
// limit says; on a full disk it waits for room as long as the output of running processes does.
void NodeProcesses::DrainOutput() {
  for (OutputPipe* pipe : Pipes()) {
    absl::StatusOr<size_t> moved = pipe->Pump(kTurn);
    while ((moved.ok() ? *moved > 0 : !spool_patience_.RunsOut(true, spool_->Acknowledged())) &&
           !delivery_->gone()) {
      pollfd news{news_->fd(), POLLIN, 0};
      if (!moved.ok()) ::poll(&news, 1, static_cast<int>(kRetry / absl::Milliseconds(1)));
      news_->Clear();
      delivery_->Wake();
      moved = pipe->Pump(kTurn);
    }
    if (moved.ok() || !reason_.ok()) continue;
    reason_ = base::Annotate(moved.status(), absl::StrCat("the last output of rank ", pipe->rank(),
                                                          " could not be kept"));
  }
  delivery_->Wake();
}

}  // namespace tutti::launch
