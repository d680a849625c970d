// LineSocket is a stream socket that carries lines, each a JSON object: what launchers and the
// small programs of launch_programs.h say to each other. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "base/unique_fd.h"

namespace tutti::launch {

class LineSocket {
 public:
  // Makes the descriptor non-blocking.
  explicit LineSocket(base::UniqueFd fd);

  int fd() const { return fd_.get(); }

  // Sends a line; Unavailable if the far end has gone, DeadlineExceeded if it takes nothing for ten
  // seconds.
  absl::Status Send(const nlohmann::json& message);
  // Returns the next message, if a whole one has come. Unavailable at the end of the stream;
  // InvalidArgument for what is no JSON object, or longer than a mebibyte.
  absl::StatusOr<std::optional<nlohmann::json>> Take();
  // Returns the same, but waits for it.
  absl::StatusOr<nlohmann::json> Receive(base::Deadline deadline);

 private:
  base::UniqueFd fd_;
  std::string read_;
  bool ended_ = false;
};

// Sends one byte with open descriptors beside it, eight at most, over a Unix socket. ReceiveFds
// waits until the deadline and returns them, `least` or more, close-on-exec.
absl::Status SendFds(int socket, const std::vector<int>& fds);
absl::StatusOr<std::vector<base::UniqueFd>> ReceiveFds(int socket, size_t least,
                                                       base::Deadline deadline);

}  // namespace tutti::launch
