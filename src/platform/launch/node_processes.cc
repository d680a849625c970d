#include "platform/launch/node_processes.h"

#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::launch {
namespace {

constexpr size_t kTurn = 1 << 20;  // bytes of one pipe before the others have theirs
constexpr absl::Duration kSweep = absl::Milliseconds(30);
constexpr absl::Duration kRetry = absl::Milliseconds(200);  // of a spool that took no more
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
      memory_(plan.memory_bytes),
      next_memory_look_(base::Deadline::After(absl::ZeroDuration())),
      kernel_kills_before_(KernelOutOfMemoryKills()),
      spool_patience_(options.spool_patience) {}

absl::Status NodeProcesses::StartAll(const std::string& command, const NodeFacts& facts) {
  for (int i = 0; i < plan_.node().process_count; ++i) {
    TUTTI_ASSIGN_OR_RETURN(auto rank, RankProcess::Start(plan_, i, command, facts, spool_));
    events_->Append("started", {{"rank", rank->rank()}, {"pid", rank->pid()}});
    ranks_.push_back(std::move(rank));
  }
  return absl::OkStatus();
}

absl::Status NodeProcesses::Run(const std::string& command, const NodeFacts& facts) {
  const absl::Status started = StartAll(command, facts);
  if (!started.ok()) BeginStop(grace_, started);
  while (true) {
    ReapChildren();
    if (!AnyRuns() && !ending_) ending_.emplace(options_.leftover_grace);
    if (ending_ && ending_->Continue() && !AnyRuns()) break;
    Wait();
    HoldSpoolLimit(PumpOutput());
    HoldTimeLimit();
    HoldMemoryShare();
  }
  DrainOutput();
  return reason_;
}

bool NodeProcesses::AnyRuns() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return !rank->ended(); });
}

absl::Duration NodeProcesses::UntilNextTask() const {
  absl::Duration wait = ending_ ? kSweep : time_limit_.Remaining();
  if (plan_.memory_bytes > 0 && AnyRuns()) wait = std::min(wait, next_memory_look_.Remaining());
  return std::min(wait, output_waits_ ? kRetry : absl::Hours(1));
}

void NodeProcesses::Wait() {
  std::vector<pollfd> waiting = {{signals_->fd(), POLLIN, 0}, {news_->fd(), POLLIN, 0}};
  for (const auto& rank : ranks_) {
    for (const OutputPipe* pipe : {&rank->out(), &rank->err()}) {
      if (pipe->open() && !output_waits_) waiting.push_back({pipe->read_fd(), POLLIN, 0});
    }
  }
  ::poll(waiting.data(), waiting.size(), base::Deadline::After(UntilNextTask()).RemainingMillis());
  news_->Clear();
  if (const std::optional<StopRequest> request = signals_->Take()) {
    BeginStop(request->grace.value_or(grace_), absl::OkStatus());
  }
  if (delivery_->gone()) {
    BeginStop(grace_, absl::AbortedError("the service does not know this allocation"));
  }
}

bool NodeProcesses::PumpOutput() {
  output_waits_ = spool_->Backlog() >= options_.spool_limit;
  if (output_waits_) return false;
  size_t moved = 0;
  for (const auto& rank : ranks_) {
    for (OutputPipe* pipe : {&rank->out(), &rank->err()}) {
      const absl::StatusOr<size_t> n = pipe->Pump(kTurn);
      output_waits_ |= !n.ok();
      moved += n.value_or(0);
    }
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
    if (rank == ranks_.end()) {
      ::waitpid(info.si_pid, nullptr, WNOHANG);  // an orphan that came to the subreaper
      continue;
    }
    events_->Append("exited",
                    (*rank)->Reap(stopped_, KernelOutOfMemoryKills() > kernel_kills_before_));
    delivery_->Wake();
  }
}

void NodeProcesses::HoldTimeLimit() {
  if (!time_limit_.Expired() || !AnyRuns()) return;
  BeginStop(grace_, absl::DeadlineExceededError(
                        absl::StrCat("wall time limit of ", plan_.timeout_seconds, " s reached")));
}

void NodeProcesses::HoldMemoryShare() {
  if (plan_.memory_bytes <= 0 || !next_memory_look_.Expired() || !AnyRuns()) return;
  std::vector<RankLeader> leaders;
  for (const auto& rank : ranks_) {
    if (!rank->ended()) leaders.push_back({rank->rank(), rank->pid()});
  }
  if (const std::optional<MemoryBreach> breach = memory_.Look(leaders)) {
    for (const auto& rank : ranks_) {
      if (rank->rank() == breach->rank && !rank->ended()) rank->KilledForMemory(breach->reason);
    }
    for (const pid_t pid : breach->processes) ::kill(pid, SIGKILL);
  }
  next_memory_look_ = base::Deadline::After(memory_.interval());
}

void NodeProcesses::BeginStop(absl::Duration grace, absl::Status reason) {
  if (stopped_) return;
  if (reason_.ok()) reason_ = std::move(reason);
  stopped_ = AnyRuns();
  if (!ending_) ending_.emplace(grace);
}

// Every writer has ended; what is left in the pipes is moved whatever the limit says, and waits for
// room on a full disk as long as the processes did.
void NodeProcesses::DrainOutput() {
  for (const auto& rank : ranks_) {
    for (OutputPipe* pipe : {&rank->out(), &rank->err()}) {
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
      reason_ = base::Annotate(moved.status(), absl::StrCat("the last output of rank ",
                                                            rank->rank(), " could not be kept"));
    }
  }
  delivery_->Wake();
}

}  // namespace tutti::launch
