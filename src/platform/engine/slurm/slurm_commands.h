// SlurmCommands runs Slurm's commands (sbatch, squeue, scancel, …). The fake of the tests answers
// from memory.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "base/process/command.h"

namespace tutti::engine {

using base::CommandResult;

class SlurmCommands {
 public:
  virtual ~SlurmCommands() = default;
  // Runs the program of arguments[0] and waits for its end. DeadlineExceeded, or Cancelled once
  // that is set: it was killed, and may have done its work. NotFound and others: it could not be
  // started.
  virtual absl::StatusOr<CommandResult> Run(const std::vector<std::string>& arguments,
                                            base::Deadline deadline,
                                            const std::atomic<bool>& cancelled) = 0;
};

// With this process's environment, but for what would change the commands' meaning (SBATCH_*,
// SCANCEL_* and the like, SLURM_* of a job that this process is in). Which cluster they are for
// (SLURM_CONF, SLURM_CLUSTERS) and the user's token for it (SLURM_JWT) they have. A command dies
// with the thread that runs it.
class RealSlurmCommands final : public SlurmCommands {
 public:
  absl::StatusOr<CommandResult> Run(const std::vector<std::string>& arguments,
                                    base::Deadline deadline,
                                    const std::atomic<bool>& cancelled) override;
};

}  // namespace tutti::engine
