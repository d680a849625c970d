// RankProcess is one process of the job on this node, from its start to its end, with its two
// output pipes. Either this launcher starts it, and then it dies with the thread that did, or
// mpirun does, and it connects to the listener (rank_listener.h). Not thread-safe.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/child_process.h"
#include "platform/launch/environment/process_environment.h"
#include "platform/launch/node/output_pipe.h"
#include "platform/launch/process/process_limit.h"
#include "platform/launch/process/python_state.h"

namespace tutti::launch {

// Whether the kernel has killed processes on this machine, for want of memory, since the ranks
// began.
enum class KernelKills { kUnknown, kNone, kSome };

class RankProcess {
 public:
  // Runs `command` by the shell in the plan's working folder, with the environment of `local_rank`.
  static absl::StatusOr<std::unique_ptr<RankProcess>> Start(
      const spec::LaunchPlan& plan, int local_rank, const std::string& command,
      const NodeFacts& facts, const ProcessLimit& limit, Spool* spool);
  // Takes in a process that mpirun started. What it is to run with is StartOf; its output is to go
  // to the write ends of out() and err(), which CloseWriteEnds then closes here.
  static absl::StatusOr<std::unique_ptr<RankProcess>> Adopt(const spec::LaunchPlan& plan,
                                                            int local_rank, pid_t pid,
                                                            Spool* spool);
  void CloseWriteEnds();

  int rank() const { return rank_; }
  pid_t pid() const { return pid_; }
  bool is_child() const { return child_.has_value(); }
  bool ended() const { return ended_; }
  bool failed() const { return failed_; }
  OutputPipe& out() { return out_; }
  OutputPipe& err() { return err_; }

  // Notes that it is killed for this reason, which its end will give.
  void KilledForMemory(std::string reason) { memory_reason_ = std::move(reason); }

  // Call when it has ended: reaps it, reads what it wrote last, returns the fields of its "exited".
  // `stopped`: we had told it to end.
  nlohmann::json Reap(bool stopped, KernelKills kernel_kills);
  // Does the same for one that mpirun started, and that has ended so.
  nlohmann::json End(base::ExitStatus status, bool stopped, KernelKills kernel_kills);

  // Notes how its Python program is; to be known before NoteBeforeStop.
  void NotePython(PythonState state) { python_ = state; }
  // Notes that it is about to be asked to end: an exception that it has shown by now is its own.
  void NoteBeforeStop();

  // Notes that mpirun asked it to end, or its task of Slurm has gone, since another rank had
  // failed.
  void NoteStopRequest();
  bool stop_requested() const { return stop_requested_; }

 private:
  RankProcess(int rank, std::filesystem::path work, OutputPipe out, OutputPipe err)
      : rank_(rank), work_(std::move(work)), out_(std::move(out)), err_(std::move(err)) {}
  std::string OutOfMemory(base::ExitStatus status, bool stopped, KernelKills kernel_kills) const;

  const int rank_;
  const std::filesystem::path work_;  // the folder that it began in
  OutputPipe out_, err_;
  std::optional<base::ChildProcess> child_;  // none of one that mpirun started
  pid_t pid_ = 0;
  bool ended_ = false;
  bool failed_ = false;
  bool stop_requested_ = false;
  std::string memory_reason_;
  std::string error_before_stop_;
  bool error_was_last_ = false;  // nothing was printed after that, on stdout either
  PythonState python_ = PythonState::kUnknown;
};

// Returns the arguments, environment and folder of the process with `local_rank`, as
// RankListener::SendStart takes them.
nlohmann::json StartOf(const spec::LaunchPlan& plan, int local_rank, const std::string& command,
                       const NodeFacts& facts);

// Called in ChildOptions::before_exec: when memory runs out the kernel shall take the job before
// the service and the launcher.
int PreferAsOutOfMemoryVictim();

}  // namespace tutti::launch
