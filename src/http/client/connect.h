// Finds a host by its name and makes a TCP connection to it, all by one deadline. Internal to this
// room.
#pragma once

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "base/unique_fd.h"
#include "http/url.h"

namespace tutti::http {

// Tries each address that the host's name has. Unavailable says why the last was of no use;
// Cancelled when `cancel_fd` becomes readable.
absl::StatusOr<base::UniqueFd> ConnectTo(const Authority& to, int cancel_fd,
                                         base::Deadline deadline);

}  // namespace tutti::http
