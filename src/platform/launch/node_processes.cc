#include "platform/launch/node_processes.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/process/child_process.h"
#include "base/status.h"
#include "platform/launch/delivery/service_link.h"
#include "platform/launch/environment/slurm_placement.h"
#include "platform/launch/node/rank_failure.h"
#include "platform/launch/process/python_state.h"
#include "platform/launch/questions/answerers.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kTogether = absl::Milliseconds(200);
constexpr absl::Duration kSweep = absl::Milliseconds(30);
constexpr absl::Duration kLongestTurn = absl::Seconds(1);  // also without a sign

// Where programs that read stacks are looked for.
std::string ToolPathOf(const NodeFacts& facts) {
  const auto path = facts.own.find("PATH");
  return absl::StrCat(path == facts.own.end() ? "" : path->second, ":", facts.program_folder);
}

}  // namespace

NodeProcesses::NodeProcesses(const spec::LaunchPlan& plan, const LauncherOptions& options,
                             const LauncherParts& parts, std::string command, NodeFacts facts,
                             MpiAgreement agreement)
    : plan_(plan),
      options_(options),
      parts_(parts),
      grace_(absl::Seconds(plan.grace_seconds)),
      command_(std::move(command)),
      facts_(std::move(facts)),
      most_processes_(options.most_processes > 0 ? options.most_processes : MostProcesses()),
      process_limit_(plan, most_processes_),
      ranks_(plan, parts.events, parts.delivery),
      pmi_(agreement.pmi),
      starter_(MakeRankStarter(
          {plan_, options_, command_, facts_, process_limit_, parts.spool, &ranks_, this},
          std::move(agreement))),
      limits_(LimitsOf({plan_, facts_, &ranks_, process_limit_, most_processes_, pmi_.get()})),
      output_(plan, options, parts),
      usage_(UsageWatch::LookByReader(
                 MemoryShareOf({plan_, facts_, &ranks_, process_limit_, most_processes_})),
             UsageWatch::LookAtGpus(facts_.gpus), parts.delivery),
      mlflow_(plan, parts.spool, parts.delivery),
      questions_(
          {{spec::kStacksQuestion, AnswererOfStacks({.path = ToolPathOf(facts_)}, parts.spool)},
           {spec::kResultsQuestion, AnswererOfResults(plan, parts.delivery)}},
          parts.delivery) {}

absl::Status NodeProcesses::Run() {
  const absl::Status started = starter_->Begin();
  parts_.delivery->Begin();
  ranks_.CountKernelKills();  // no process needs too much within a moment
  if (!started.ok()) Stop(BlameSharedDisk(started, plan_.shared_folder));
  while (!HasEnded()) {
    Wait();
    if (absl::Status kept = output_.Pump(Pipes()); !kept.ok()) Stop(std::move(kept));
    HoldLimits();
    if (plan_.measures_usage) usage_.SetRanks(ranks_.Running());
    mlflow_.Look();
    questions_.Look(ranks_.Running());
  }
  const bool told_to_end = stopped_ || requested_ || !reason_.ok();
  const absl::Status drained = output_.Drain(Pipes(), told_to_end);
  starter_->OutputEnded();
  mlflow_.End();
  if (reason_.ok()) reason_ = drained;
  return reason_;
}

bool NodeProcesses::HasEnded() {
  starter_->HandleMessages();
  ReapChildren();
  starter_->RunDueTasks();
  if (!AnyRuns() && !ending_) {
    questions_.End();
    ending_.emplace(options_.leftover_grace);
  }
  if (ending_ && ending_->Continue(starter_->Spared()) && !AnyRuns()) return true;
  if (!ending_ || !ending_->IsOverdue()) return false;
  GiveUpOnRanks();
  return true;
}

std::vector<OutputPipe*> NodeProcesses::Pipes() {
  std::vector<OutputPipe*> pipes = ranks_.Pipes();
  if (OutputPipe* const output = starter_->output()) pipes.push_back(output);
  return pipes;
}

absl::Duration NodeProcesses::UntilNextTask() const {
  absl::Duration wait = ending_ ? kSweep : kLongestTurn;
  wait = std::min({wait, starter_->UntilNextTask(), output_.UntilNextPump()});
  if (!AnyRuns()) return wait;
  for (const auto& limit : limits_) wait = std::min(wait, limit->UntilNextLook(ending()));
  return wait;
}

void NodeProcesses::Wait() {
  std::vector<pollfd> waiting = {{parts_.signals->fd(), POLLIN, 0}, {parts_.news->fd(), POLLIN, 0}};
  if (pmi_ != nullptr) waiting.push_back({pmi_->news().fd(), POLLIN, 0});
  starter_->AddTo(waiting);
  for (const OutputPipe* pipe : Pipes()) {
    if (pipe->open() && !output_.waits()) waiting.push_back({pipe->read_fd(), POLLIN, 0});
  }
  ::poll(waiting.data(), waiting.size(), base::Deadline::After(UntilNextTask()).RemainingMillis());
  parts_.news->Clear();
  if (pmi_ != nullptr) pmi_->news().Clear();
  if (const std::optional<StopRequest> request = parts_.signals->Take()) {
    if (!TellsAllAtOnce()) ReapChildren();  // who has ended by now was not stopped
    EndOnRequest(*request);
  }
  if (parts_.delivery->gone()) Stop(absl::AbortedError(kNobodyWaits));
}

void NodeProcesses::HoldLimits() {
  for (const auto& limit : limits_) {
    if (!AnyRuns() || limit->UntilNextLook(ending()) > absl::ZeroDuration()) continue;
    std::optional<StopOrder> order = limit->Look();
    if (order) BeginStop(order->grace.value_or(grace_), std::move(order->reason));
  }
}

// A cluster that ends a job tells all its processes, and the launcher maybe last.
bool NodeProcesses::TellsAllAtOnce() const {
  return !stopped_ && IsStoppedByCluster(plan_.directory);
}

void NodeProcesses::ReapChildren() {
  while (true) {
    siginfo_t info{};
    // Not of other threads, which wait for theirs.
    const int which = WEXITED | WNOHANG | WNOWAIT | __WNOTHREAD;
    if (::waitid(P_ALL, 0, &info, which) != 0 || info.si_pid == 0) return;
    if (!starter_->ReapIfOwn(info.si_pid)) ReapRank(info.si_pid, info.si_status);
  }
}

void NodeProcesses::ReapRank(pid_t pid, int status) {
  RankProcess* const rank = ranks_.FindByPid(pid);
  if (rank == nullptr || !rank->is_child()) {
    ::waitpid(pid, nullptr, WNOHANG);  // an orphan that came to the subreaper
    return;
  }
  if (status != 0) AwaitCluster();
  if (rank->ended()) return;
  starter_->RankEnded(rank->rank(), ranks_.Reap(*rank, stopped_));
}

void NodeProcesses::AwaitCluster() {
  if (awaited_cluster_ || !TellsAllAtOnce()) return;
  awaited_cluster_ = true;
  StopIfRequested(kTogether);
}

bool NodeProcesses::StopIfRequested(absl::Duration patience) {
  const base::Deadline deadline = base::Deadline::After(patience);
  std::optional<StopRequest> request = parts_.signals->Take();
  while (!request && !deadline.Expired()) {
    pollfd signals = {parts_.signals->fd(), POLLIN, 0};
    ::poll(&signals, 1, deadline.RemainingMillis());
    request = parts_.signals->Take();
  }
  if (request) EndOnRequest(*request);
  return request.has_value();
}

// They are told first: who is asked why may take its time.
void NodeProcesses::EndOnRequest(const StopRequest& request) {
  NoteStopRequest(plan_.directory);
  requested_ = true;
  if (stopped_) return;
  const absl::Time now = absl::Now();
  if (!IsStoppedByCluster(plan_.directory)) starter_->HandleMessages();  // as in Wait
  BeginStop(request.grace.value_or(grace_), absl::OkStatus());
  ending_->Continue(starter_->Spared());
  if (!reason_.ok()) return;
  reason_ = ReasonOfStopRequest(plan_.directory, now);
  absl::Status none_began = starter_->WhyNoneBegan();
  if (!absl::IsCancelled(reason_) || none_began.ok()) return;
  parts_.events->Append("unlaunched", nlohmann::json::object());
  reason_ = std::move(none_began);
}

void NodeProcesses::BeginStop(absl::Duration grace, absl::Status reason) {
  if (stopped_) return;
  if (reason_.ok()) reason_ = std::move(reason);
  stopped_ = AnyRuns();
  questions_.End();
  NotePythons();
  for (const auto& rank : ranks_.ranks()) {
    if (!rank->ended()) rank->NoteBeforeStop();
  }
  starter_->BeginStop(grace);
  if (!ending_) ending_.emplace(grace);
}

void NodeProcesses::NotePythons() {
  if (!spec::DriverOf(plan_.distribution).is_mpi) return;
  for (const auto& [number, processes] :
       ProcessesByRank(ranks_.Running(), base::Descendants(::getpid()))) {
    if (RankProcess* const rank = ranks_.Find(number)) rank->NotePython(PythonStateOf(processes));
  }
}

void NodeProcesses::StopUnlaunched(absl::string_view reason) {
  parts_.events->Append("unlaunched", nlohmann::json::object());
  Stop(absl::UnavailableError(reason));
}

void NodeProcesses::GiveUpOnRanks() {
  const std::vector<pid_t> left = base::Descendants(::getpid());
  const std::string what =
      left.empty() ? "nothing told of their end"
                   : absl::StrCat("process ", absl::StrJoin(left, ", "),
                                  " does not end, by SIGKILL either (it waits for a device or a "
                                  "file system?)");
  ranks_.GiveUp();
  const std::string given_up =
      absl::StrCat("its processes on node ", plan_.node().name, " were given up: ", what);
  reason_ = reason_.ok() ? absl::InternalError(given_up) : WithMore(reason_, given_up);
}

}  // namespace tutti::launch
