#include "platform/launch/node_processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/launch/last_error.h"
#include "platform/launch/node_folders.h"
#include "platform/launch/process_tree.h"

namespace tutti::launch {
namespace {

constexpr size_t kTurn = 1 << 20;  // bytes of one pipe before the others have theirs
constexpr absl::Duration kSweep = absl::Milliseconds(30);
constexpr absl::Duration kForever = absl::Hours(24 * 365);

// When memory runs out the kernel shall take the job before the service and the launcher.
int PreferAsOutOfMemoryVictim() {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  [[maybe_unused]] const ssize_t n = ::write(fd, "500", 3);
  ::close(fd);
  return 0;
}

std::string Shell() { return ::access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh"; }

uint64_t AcknowledgedOf(const Spool& spool) {
  uint64_t sum = 0;
  for (const auto& file : spool.files()) sum += file->acknowledged();
  return sum;
}

}  // namespace

struct NodeProcesses::Rank {
  int rank;
  int local_rank;
  OutputPipe out, err;
  std::optional<base::ChildProcess> child;
  bool ended = false;
  bool killed_for_memory = false;
  std::string memory_reason;
};

NodeProcesses::NodeProcesses(const spec::LaunchPlan& plan, const LauncherOptions& options,
                             EventLog* events, Spool* spool, Delivery* delivery, Signals* signals,
                             Wakeup* news)
    : plan_(plan),
      options_(options),
      events_(events),
      spool_(spool),
      delivery_(delivery),
      signals_(signals),
      news_(news),
      memory_(plan.memory_bytes),
      next_memory_look_(base::Deadline::After(absl::ZeroDuration())),
      time_limit_(base::Deadline::After(
          plan.timeout_seconds > 0 ? absl::Seconds(plan.timeout_seconds) : kForever)),
      kernel_kills_before_(KernelOutOfMemoryKills()) {}

NodeProcesses::~NodeProcesses() = default;

absl::Status NodeProcesses::StartOne(Rank& rank, const std::string& command,
                                     const NodeFacts& facts) {
  base::ChildOptions options;
  options.arguments = {Shell(), "-c", command};
  options.environment = EnvironmentOf(plan_, rank.local_rank, facts);
  options.directory = NodeFolders(plan_.directory).work();
  options.stdout_fd = rank.out.write_fd();
  options.stderr_fd = rank.err.write_fd();
  options.die_with_parent = true;
  options.before_exec = PreferAsOutOfMemoryVictim;
  absl::StatusOr<base::ChildProcess> child = base::ChildProcess::Start(options);
  rank.out.CloseWriteEnd();
  rank.err.CloseWriteEnd();
  if (!child.ok()) {
    return base::Annotate(child.status(),
                          absl::StrCat("rank ", rank.rank, " could not be started"));
  }
  rank.child = *std::move(child);
  events_->Append("started", {{"rank", rank.rank}, {"pid", rank.child->pid()}});
  return absl::OkStatus();
}

absl::Status NodeProcesses::StartAll(const std::string& command, const NodeFacts& facts) {
  for (int i = 0; i < plan_.node().process_count; ++i) {
    TUTTI_ASSIGN_OR_RETURN(OutputPipe out, OutputPipe::Open(&spool_->Stdout(i)));
    TUTTI_ASSIGN_OR_RETURN(OutputPipe err, OutputPipe::Open(&spool_->Stderr(i)));
    auto rank = std::make_unique<Rank>(
        Rank{plan_.node().first_rank + i, i, std::move(out), std::move(err)});
    TUTTI_RETURN_IF_ERROR(StartOne(*rank, command, facts));
    ranks_.push_back(std::move(rank));
  }
  return absl::OkStatus();
}

absl::Status NodeProcesses::Run(const std::string& command, const NodeFacts& facts) {
  const absl::Status started = StartAll(command, facts);
  if (!started.ok()) BeginStop(absl::Seconds(plan_.grace_seconds), started);
  while (true) {
    ReapChildren();
    if (!AnyRuns() && !stopping_) {
      stopping_ = Stopping{base::Deadline::After(options_.leftover_grace)};
    }
    if (stopping_ && EndDescendants() && !AnyRuns()) break;
    PollOnce();
    PumpOutput();
    HoldLimits();
  }
  DrainOutput();
  return reason_;
}

bool NodeProcesses::AnyRuns() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return !rank->ended; });
}

absl::Duration NodeProcesses::UntilNextTask() const {
  absl::Duration wait = stopping_ ? kSweep : time_limit_.Remaining();
  if (plan_.memory_bytes > 0 && AnyRuns()) wait = std::min(wait, next_memory_look_.Remaining());
  if (output_waits_) wait = std::min(wait, absl::Milliseconds(200));
  return std::min(wait, absl::Hours(1));
}

void NodeProcesses::PollOnce() {
  std::vector<pollfd> waiting = {{signals_->fd(), POLLIN, 0}, {news_->fd(), POLLIN, 0}};
  for (const auto& rank : ranks_) {
    for (const OutputPipe* pipe : {&rank->out, &rank->err}) {
      if (pipe->open() && !output_waits_) waiting.push_back({pipe->read_fd(), POLLIN, 0});
    }
  }
  ::poll(waiting.data(), waiting.size(), base::Deadline::After(UntilNextTask()).RemainingMillis());
  if (const std::optional<StopRequest> request = signals_->Take()) {
    BeginStop(request->grace.value_or(absl::Seconds(plan_.grace_seconds)), absl::OkStatus());
  }
  news_->Clear();
  if (delivery_->gone()) {
    BeginStop(absl::Seconds(plan_.grace_seconds),
              absl::AbortedError("the service does not know this allocation"));
  }
}

void NodeProcesses::PumpOutput() {
  output_waits_ = spool_->Backlog() >= options_.spool_limit;
  bool full = false;
  size_t moved = 0;
  for (const auto& rank : ranks_) {
    for (OutputPipe* pipe : {&rank->out, &rank->err}) {
      if (output_waits_) continue;
      const absl::StatusOr<size_t> n = pipe->Pump(kTurn);
      full |= !n.ok();
      moved += n.ok() ? *n : 0;
    }
  }
  if (moved > 0) delivery_->Wake();
  output_waits_ |= full;
  WatchSpool(full);
}

// Ends the job when its output has waited too long with nothing taken.
void NodeProcesses::WatchSpool(bool full) {
  const uint64_t acknowledged = AcknowledgedOf(*spool_);
  if (!output_waits_ || acknowledged != acknowledged_at_wait_) spool_patience_.reset();
  if (!output_waits_) return;
  if (!spool_patience_) {
    spool_patience_ = base::Deadline::After(options_.spool_patience);
    acknowledged_at_wait_ = acknowledged;
  } else if (spool_patience_->Expired()) {
    BeginStop(absl::Seconds(plan_.grace_seconds),
              absl::ResourceExhaustedError(absl::StrCat(
                  "the output of its processes could not be kept: ",
                  full ? "the disk of node " : "the spool of node ", plan_.node().name,
                  " is full (", spool_->Backlog() >> 20, " MiB wait for the service, which took ",
                  "nothing for ", absl::FormatDuration(options_.spool_patience), ")")));
  }
}

void NodeProcesses::ReapChildren() {
  while (true) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    const auto rank = std::find_if(ranks_.begin(), ranks_.end(), [&](const auto& r) {
      return r->child && r->child->pid() == info.si_pid;
    });
    if (rank == ranks_.end()) {
      ::waitpid(info.si_pid, nullptr, WNOHANG);  // an orphan that came to the subreaper
      continue;
    }
    const auto status = (*rank)->child->Wait(base::Deadline::After(absl::Seconds(1)));
    Ended(**rank, status.value_or(base::ExitStatus{}));
  }
}

std::pair<bool, std::string> NodeProcesses::OutOfMemory(const Rank& rank,
                                                        base::ExitStatus status) const {
  if (rank.killed_for_memory) return {true, rank.memory_reason};
  if (status.signal == SIGKILL && !stopped_ && KernelOutOfMemoryKills() > kernel_kills_before_) {
    return {true, "out of memory: the kernel killed the process"};
  }
  return {false, ""};
}

void NodeProcesses::Ended(Rank& rank, base::ExitStatus status) {
  rank.ended = true;
  // What it wrote last is in the pipes by now, and belongs to the reason.
  for (OutputPipe* pipe : {&rank.out, &rank.err}) pipe->Pump(kTurn).IgnoreError();
  delivery_->Wake();
  auto [out_of_memory, reason] = OutOfMemory(rank, status);
  events_->Append("exited", {{"rank", rank.rank},
                             {"code", status.code},
                             {"signal", status.signal},
                             {"out_of_memory", out_of_memory},
                             {"stopped", stopped_},
                             {"last_error", out_of_memory ? reason
                                            : status.ok() ? ""
                                                          : LastError(rank.err.tail())}});
}

void NodeProcesses::HoldLimits() {
  if (time_limit_.Expired() && AnyRuns()) {
    BeginStop(absl::Seconds(plan_.grace_seconds),
              absl::DeadlineExceededError(
                  absl::StrCat("wall time limit of ", plan_.timeout_seconds, " s reached")));
  }
  if (plan_.memory_bytes <= 0 || !next_memory_look_.Expired() || !AnyRuns()) return;
  std::vector<RankLeader> leaders;
  for (const auto& rank : ranks_) {
    if (!rank->ended) leaders.push_back({rank->rank, rank->child->pid()});
  }
  if (const std::optional<MemoryBreach> breach = memory_.Look(leaders)) {
    for (const auto& rank : ranks_) {
      if (rank->rank != breach->rank || rank->ended) continue;
      rank->killed_for_memory = true;
      rank->memory_reason = breach->reason;
    }
    for (const pid_t pid : breach->processes) ::kill(pid, SIGKILL);
  }
  next_memory_look_ = base::Deadline::After(memory_.interval());
}

void NodeProcesses::BeginStop(absl::Duration grace, absl::Status reason) {
  if (stopped_) return;
  if (reason_.ok()) reason_ = std::move(reason);
  stopped_ = AnyRuns();
  if (stopping_) return;
  stopping_ = Stopping{base::Deadline::After(grace)};
}

bool NodeProcesses::EndDescendants() {
  const std::vector<pid_t> descendants = base::Descendants(::getpid());
  const bool kill = stopping_->kill_at.Expired();
  for (const pid_t pid : descendants) {
    if (kill) {
      ::kill(pid, SIGKILL);
    } else if (stopping_->told.insert(pid).second) {
      ::kill(pid, SIGTERM);
      ::kill(pid, SIGCONT);  // a stopped process could not act on it
    }
  }
  return descendants.empty();
}

// Every writer has ended; what is left in the pipes is moved whatever the limit says.
void NodeProcesses::DrainOutput() {
  for (const auto& rank : ranks_) {
    for (OutputPipe* pipe : {&rank->out, &rank->err}) {
      absl::StatusOr<size_t> moved = 1;
      while (moved.ok() && *moved > 0) moved = pipe->Pump(kTurn);
      if (moved.ok()) continue;
      spdlog::error("rank {}: {}", rank->rank, moved.status().ToString());
      if (reason_.ok()) {
        reason_ = base::Annotate(moved.status(), absl::StrCat("the last output of rank ",
                                                              rank->rank, " could not be kept"));
      }
    }
  }
  delivery_->Wake();
}

}  // namespace tutti::launch
