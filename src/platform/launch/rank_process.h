// One process of the job on this node: its start, its two pipes, its end. Not thread-safe; the
// process dies with the thread that started it.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/child_process.h"
#include "platform/launch/environment.h"
#include "platform/launch/output_pipe.h"

namespace tutti::launch {

class RankProcess {
 public:
  // Runs `command` by the shell in the plan's working folder, with the environment of `local_rank`.
  static absl::StatusOr<std::unique_ptr<RankProcess>> Start(const spec::LaunchPlan& plan,
                                                            int local_rank,
                                                            const std::string& command,
                                                            const NodeFacts& facts, Spool* spool);
  int rank() const { return rank_; }
  pid_t pid() const { return child_.pid(); }
  bool ended() const { return ended_; }
  OutputPipe& out() { return out_; }
  OutputPipe& err() { return err_; }

  // It is killed for this reason, which its end will give.
  void KilledForMemory(std::string reason) { memory_reason_ = std::move(reason); }

  // Call when it has ended: reaps it, reads what it wrote last, returns the fields of its "exited".
  // `stopped`: we had told it to end. `kernel_kills`: the kernel ran out of memory meanwhile.
  nlohmann::json Reap(bool stopped, bool kernel_kills);

 private:
  RankProcess(int rank, OutputPipe out, OutputPipe err, base::ChildProcess child)
      : rank_(rank), out_(std::move(out)), err_(std::move(err)), child_(std::move(child)) {}
  std::string OutOfMemory(base::ExitStatus status, bool stopped, bool kernel_kills) const;

  const int rank_;
  OutputPipe out_, err_;
  base::ChildProcess child_;
  bool ended_ = false;
  std::string memory_reason_;
};

}  // namespace tutti::launch
