// StarterProgram runs a program that starts ranks for this launcher, as its child: mpirun, its
// daemon, or srun. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/process/child_process.h"
#include "platform/launch/environment/process_environment.h"
#include "platform/launch/node/output_pipe.h"
#include "platform/launch/process/process_limit.h"

namespace tutti::launch {

class StarterProgram {
 public:
  // What it prints goes to `spool`; it and all that it starts are held to `limit`. Both outlive it.
  StarterProgram(const ProcessLimit& limit, SpoolFile* spool, std::string directory)
      : limit_(limit), spool_(spool), directory_(std::move(directory)) {}

  absl::Status Start(std::vector<std::string> arguments, Variables environment);
  bool runs() const { return child_.has_value(); }
  pid_t pid() const { return child_ ? child_->pid() : -1; }

  struct End {
    bool ok = false;
    bool told = false;    // by SIGTERM: who ended it knows why
    std::string status;   // "exit code 1"
    std::string said;     // the line that says why; "" if there is none
    std::string printed;  // the last few KiB, without notices of signals that it handed on
  };
  // Call when it has ended.
  End Reap();

  // Returns the output of the last program that was started; null if there was none.
  OutputPipe* output() { return output_ ? &*output_ : nullptr; }
  // Returns ": " and the line that says best what is wrong so far; "" if there is none.
  std::string ErrorSoFar() const;

 private:
  const ProcessLimit& limit_;
  SpoolFile* const spool_;
  const std::string directory_;
  std::optional<base::ChildProcess> child_;
  std::optional<OutputPipe> output_;
};

}  // namespace tutti::launch
