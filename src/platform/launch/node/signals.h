// Signals makes the launcher's signals readable from a descriptor, for poll(2).
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace tutti::launch {

struct StopRequest {
  std::optional<absl::Duration> grace;  // sent along with the signal (sigqueue, milliseconds)
};

class Signals {
 public:
  // Blocks SIGTERM, SIGINT, SIGHUP, SIGCHLD and SIGPIPE in this thread and those it starts later.
  static absl::StatusOr<Signals> Block();

  int fd() const { return fd_.get(); }
  // Returns whether a request to stop has come that nobody has taken.
  static bool StopIsPending();
  // Reads what has come: a request to stop, if there was one. SIGCHLD and SIGHUP only wake.
  std::optional<StopRequest> Take();

 private:
  explicit Signals(base::UniqueFd fd) : fd_(std::move(fd)) {}
  base::UniqueFd fd_;
};

}  // namespace tutti::launch
