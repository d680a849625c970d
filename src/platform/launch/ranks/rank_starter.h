// Defines RankStarter, the interface through which a node's ranks are started. It has an
// implementation for each way: by this launcher itself (direct_starter.h), by Open MPI's mpirun
// (mpirun_starter.h), in the tasks that Slurm's PMIx has for them (pmix_starter.h). What all ranks
// have in common whoever started them is NodeProcesses', which polls, passes their output on and
// ends them. Not thread-safe: all calls come from the thread that the processes are to die with.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/process/child_process.h"
#include "platform/launch/environment/process_environment.h"
#include "platform/launch/mpi/mpi_agreement.h"
#include "platform/launch/node/launcher_options.h"
#include "platform/launch/node/output_pipe.h"
#include "platform/launch/node/spool.h"
#include "platform/launch/process/process_limit.h"
#include "platform/launch/ranks/rank_table.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// RankSupervisor is what a starter may ask of the object that polls for it (NodeProcesses).
class RankSupervisor {
 public:
  virtual ~RankSupervisor() = default;
  // Ends all processes of the node, with the plan's grace. `reason`: what went wrong.
  virtual void Stop(absl::Status reason) = 0;
  // Stops them like Stop, for when mpirun or srun did not start the ranks: the job is not at fault.
  virtual void StopUnlaunched(absl::string_view reason) = 0;
  // Ends all processes and returns true if this launcher is told to end within `patience`.
  virtual bool StopIfRequested(absl::Duration patience) = 0;
  // Call before a rank that has failed is reaped: a cluster that ends a job tells all its
  // processes, this launcher maybe last. Waits for that once, and then ends all processes.
  virtual void AwaitCluster() = 0;
  // Notes the children that have ended by now.
  virtual void ReapChildren() = 0;
  // Returns whether all processes have ended or are to end, so that nothing may be started any
  // more.
  virtual bool ending() const = 0;
  // Returns whether the processes were told to end before all had ended by themselves.
  virtual bool stopped() const = 0;
  // Returns whether somebody has told this launcher to end: a user, the service, a cluster.
  virtual bool requested() const = 0;
};

// StartContext is what a starter works with. All outlive it.
struct StartContext {
  const spec::LaunchPlan& plan;
  const LauncherOptions& options;
  const std::string& command;
  const NodeFacts& facts;
  const ProcessLimit& limit;  // for all that is started
  Spool* spool;
  RankTable* ranks;
  RankSupervisor* supervisor;
};

class RankStarter {
 public:
  virtual ~RankStarter() = default;

  // Starts the ranks, or has them started: those may come to the table later.
  virtual absl::Status Begin() = 0;
  // Returns whether ranks may still come, or what starts them still runs.
  virtual bool running() const { return false; }

  // Adds what it waits for; HandleMessages is then to be called at once.
  virtual void AddTo(std::vector<pollfd>& /*waiting*/) const {}
  virtual void HandleMessages() {}
  // Returns when RunDueTasks is to be called next, at the latest.
  virtual absl::Duration UntilNextTask() const { return absl::InfiniteDuration(); }
  virtual void RunDueTasks() {}

  // Notes that `pid`, a child of this process, has ended; true if the starter had started it to
  // start ranks, and has reaped it.
  virtual bool ReapIfOwn(pid_t /*pid*/) { return false; }
  virtual void RankEnded(int /*rank*/, base::ExitStatus /*status*/) {}

  // The ranks are to end within `grace`: nothing is started any more.
  virtual void BeginStop(absl::Duration /*grace*/) {}
  // Returns the processes that must not be told to end yet.
  virtual std::set<pid_t> Spared() const { return {}; }
  // All has ended, and what was printed has been read.
  virtual void OutputEnded() {}
  // Returns why no rank has begun by now, if that is the fault of whoever was to begin them; else
  // OK.
  virtual absl::Status WhyNoneBegan() const { return absl::OkStatus(); }
  // Returns the output of what starts the ranks; null if there is none.
  virtual OutputPipe* output() { return nullptr; }
};

// Returns the one for what the launchers of the gang have agreed on.
std::unique_ptr<RankStarter> MakeRankStarter(const StartContext& context, MpiAgreement agreement);

}  // namespace tutti::launch
