// ServerProcess is a process that outlives the service which started it, and which the next service
// finds again by its id and the time of its start. Movable; destroying it leaves the process alone.
// Not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "base/process/child_process.h"
#include "base/unique_fd.h"

namespace tutti::file_server {

class ServerProcess {
 public:
  static absl::StatusOr<ServerProcess> Start(const base::ChildOptions& options);
  // Finds one that a service before this one has started; nullopt if it has ended.
  static std::optional<ServerProcess> Find(pid_t pid, uint64_t start_time);

  pid_t pid() const { return pid_; }
  uint64_t start_time() const { return start_time_; }
  // Whether it has not ended. Does not wait.
  bool IsAlive();
  // Returns how it has ended, "" if that is not known, as of one that was found.
  std::string HowItEnded();
  // Tells it to end, and kills it where it has not by the deadline.
  absl::Status End(base::Deadline deadline);

 private:
  ServerProcess(pid_t pid, uint64_t start_time, base::UniqueFd pidfd)
      : pid_(pid), start_time_(start_time), pidfd_(std::move(pidfd)) {}

  pid_t pid_;
  uint64_t start_time_;
  base::UniqueFd pidfd_;                     // of one that was found
  std::optional<base::ChildProcess> child_;  // of one that was started
};

}  // namespace tutti::file_server
