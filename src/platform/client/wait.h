// Waiting for a job without following it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "platform/client/service.h"

namespace tutti::client {

// The ended job, as JSON. Asks at growing intervals of at most a second, also while the service is
// away. DeadlineExceeded if the job has not ended by then; Unavailable if the service was away
// then.
absl::StatusOr<std::string> WaitForEnd(Service& service, const std::string& id,
                                       base::Deadline deadline);

}  // namespace tutti::client
