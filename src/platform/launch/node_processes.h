// The processes of one node from start to the end of the last descendant: their output goes to the
// spool, their exits to the event log, and limits of time, memory and spool are held. One thread,
// one poll loop; the processes die with that thread (PR_SET_PDEATHSIG).
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "platform/launch/delivery/delivery.h"
#include "platform/launch/environment/environment.h"
#include "platform/launch/mpi/mpi_start.h"
#include "platform/launch/mpi/world_watch.h"
#include "platform/launch/node/launcher_options.h"
#include "platform/launch/node/memory_watch.h"
#include "platform/launch/node/process_limit.h"
#include "platform/launch/node/process_tree.h"
#include "platform/launch/node/signals.h"
#include "platform/launch/node/spool_patience.h"
#include "platform/launch/rank_process.h"

namespace tutti::launch {

class NodeProcesses {
 public:
  // All outlive the object. `news` wakes the loop when the service acknowledged something or no
  // longer knows the allocation.
  NodeProcesses(const spec::LaunchPlan& plan, const LauncherOptions& options, EventLog* events,
                Spool* spool, Delivery* delivery, Signals* signals, Wakeup* news);

  // Starts `command` once per rank, or has `mpi` (may be null) start it, and returns when no
  // process is left. OK unless something other than the processes themselves went wrong: a process
  // could not be started, the time limit, a full spool; Aborted if the service does not know the
  // allocation.
  absl::Status Run(const std::string& command, const NodeFacts& facts,
                   std::unique_ptr<MpiStart> mpi);
  // Whether one of them has ended with another exit code than 0.
  bool failed() const { return failed_; }

 private:
  absl::Status StartAll();
  absl::Status StartRank(int local_rank, const NodeFacts& facts);
  void NoteBegun(std::unique_ptr<RankProcess> rank);
  void HearMpi();
  absl::Status Adopt(const RankMessage& news);
  absl::Status StartInPlace(const RankMessage& news);
  absl::Status CheckComes(int rank);
  RankProcess* RankOf(int rank);
  void Report(nlohmann::json exit);
  KernelKills KilledByKernel() const;
  void MpiStarterEnded();
  std::optional<StopRequest> AwaitStop(absl::Duration patience);
  void EndAsTold(const StopRequest& request);
  std::set<pid_t> Spared() const;
  bool AnyRuns() const;
  std::vector<RankLeader> Leaders() const;  // of those that have not ended
  std::vector<OutputPipe*> Pipes() const;
  void Wait();
  absl::Duration UntilNextTask() const;
  // True if the disk is full.
  bool PumpOutput();
  bool TellsAllAtOnce() const;
  void ReapChildren();
  void HoldTimeLimit();
  bool AwaitsRanks() const;
  bool AwaitsPlaces() const;
  void CallSrunAgain();
  void HoldPlaceLimit();
  void HoldAloneLimit();
  void HoldMemoryShare();
  void HoldProcessLimit();
  bool MayMissWorld() const;
  void HoldWorld();
  void HoldSpoolLimit(bool disk_full);
  // `reason`: what went wrong outside of the processes; OK: they are just to end.
  void BeginStop(absl::Duration grace, absl::Status reason);
  // Likewise, of ranks that whoever was to begin them did not: the job is not at fault.
  void StopUnlaunched(absl::string_view reason);
  // Those whose processes do not end, or that are gone without a word: nobody waits for them.
  void GiveUpOnRanks();
  void DrainOutput();

  const spec::LaunchPlan& plan_;
  const LauncherOptions& options_;
  const absl::Duration grace_;
  EventLog* const events_;
  Spool* const spool_;
  Delivery* const delivery_;
  Signals* const signals_;
  Wakeup* const news_;

  std::string command_;
  NodeFacts facts_;
  std::unique_ptr<MpiStart> mpi_;
  std::vector<std::unique_ptr<RankProcess>> ranks_;
  const base::Deadline time_limit_;
  const base::Deadline place_limit_;
  std::optional<base::Deadline> srun_again_;  // when it is called again
  absl::Status taken_back_;  // what srun said last, if Slurm does not have the job run
  std::optional<base::Deadline> alone_limit_;
  const int most_processes_;
  const ProcessLimit limit_;
  MemoryWatch memory_;
  base::Deadline next_memory_look_;
  WorldWatch world_;
  base::Deadline next_world_look_;
  std::optional<int64_t> kernel_kills_before_;  // since they began
  SpoolPatience spool_patience_;
  bool output_waits_ = false;
  std::optional<EndingDescendants> ending_;
  base::Deadline starter_patience_;  // once it is to end
  bool awaited_cluster_ = false;     // which may have told a rank that failed before the launcher
  bool stopped_ = false;             // told to end before all ranks had ended by themselves
  bool failed_ = false;
  absl::Status reason_;  // the first thing that went wrong outside of the processes
};

}  // namespace tutti::launch
