// NodeProcesses runs the processes of one node, from their start to the end of the last descendant:
// a starter begins them (ranks/rank_starter.h), their output goes to the spool, their ends to the
// event log, and limits (limits/limits.h) are held. One thread, one poll loop; the processes die
// with that thread (PR_SET_PDEATHSIG).
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "platform/launch/delivery/delivery.h"
#include "platform/launch/environment/process_environment.h"
#include "platform/launch/launcher_parts.h"
#include "platform/launch/limits/limits.h"
#include "platform/launch/mpi/mpi_agreement.h"
#include "platform/launch/node/launcher_options.h"
#include "platform/launch/node/signals.h"
#include "platform/launch/output_forwarder.h"
#include "platform/launch/process/process_limit.h"
#include "platform/launch/process/process_tree.h"
#include "platform/launch/questions/question_answers.h"
#include "platform/launch/ranks/rank_starter.h"
#include "platform/launch/ranks/rank_table.h"
#include "platform/launch/usage/mlflow_watch.h"
#include "platform/launch/usage/usage_watch.h"

namespace tutti::launch {

class NodeProcesses : private RankSupervisor {
 public:
  // Serves one Run of `command` as each of the plan's ranks on this node. `plan` and `options`
  // outlive the object. `agreement`: what starts the ranks.
  NodeProcesses(const spec::LaunchPlan& plan, const LauncherOptions& options,
                const LauncherParts& parts, std::string command, NodeFacts facts,
                MpiAgreement agreement);

  // Starts the ranks, and returns when no process is left. OK unless something other than the
  // processes themselves went wrong: a process could not be started, the time limit, a full spool;
  // Aborted if the service does not know the allocation.
  absl::Status Run();
  // Returns whether one of them has ended with another exit code than 0.
  bool failed() const { return ranks_.failed(); }

 private:
  void Stop(absl::Status reason) override { BeginStop(grace_, std::move(reason)); }
  void StopUnlaunched(absl::string_view reason) override;
  bool StopIfRequested(absl::Duration patience) override;
  void AwaitCluster() override;
  void ReapChildren() override;
  bool ending() const override { return ending_.has_value(); }
  bool stopped() const override { return stopped_; }
  bool requested() const override { return requested_; }

  bool AnyRuns() const { return starter_->running() || ranks_.AnyRuns(); }
  std::vector<OutputPipe*> Pipes();
  // Returns whether no process is left, or none that will end.
  bool HasEnded();
  void Wait();
  absl::Duration UntilNextTask() const;
  bool TellsAllAtOnce() const;
  void ReapRank(pid_t pid, int status);
  void HoldLimits();
  // Begins to end them; `reason`: what went wrong outside of the processes; OK: they are just to
  // end.
  void BeginStop(absl::Duration grace, absl::Status reason);
  void EndOnRequest(const StopRequest& request);
  // Notes what the Python of each rank is doing, if the ranks are one MPI world. Call before the
  // ranks are told to end.
  void NotePythons();
  // Gives up on ranks whose processes do not end, or that are gone without a message: nobody waits
  // for them.
  void GiveUpOnRanks();

  const spec::LaunchPlan& plan_;
  const LauncherOptions& options_;
  const LauncherParts parts_;
  const absl::Duration grace_;
  const std::string command_;
  const NodeFacts facts_;
  const int most_processes_;
  const ProcessLimit process_limit_;
  RankTable ranks_;
  const std::shared_ptr<PmiServer> pmi_;
  const std::unique_ptr<RankStarter> starter_;
  const std::vector<std::unique_ptr<Limit>> limits_;
  OutputForwarder output_;
  UsageWatch usage_;
  MlflowWatch mlflow_;
  QuestionAnswers questions_;
  std::optional<EndingDescendants> ending_;
  bool awaited_cluster_ = false;  // which may have told a rank that failed before the launcher
  bool stopped_ = false;          // told to end before all ranks had ended by themselves
  bool requested_ = false;        // to end, by somebody, be it after the last rank
  absl::Status reason_;           // the first thing that went wrong outside of the processes
};

}  // namespace tutti::launch
