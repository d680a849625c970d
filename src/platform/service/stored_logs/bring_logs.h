// Brings the logs of one job to the store that its file or its site names, by tutti-storage. It is
// the same however often it is done, so it is done anew after a crash at any point. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "platform/service/jobs/shared_state.h"
#include "platform/service/secrets/secrets.h"

namespace tutti::service {

// Puts the logs of a job that has ended and has a logs_place, the service's log of it, and then the
// manifest, which so tells a reader that all is there; blocks, but for long no more once
// SharedState::ending is set. What it returns with OK is to be told beside that: that there are
// none, what was left out, or "". NotFound: the job of that sequence is not there any more, though
// one of its name may be. InvalidArgument: no later try helps. Other errors are for a user to read,
// and say what they are about (storage_fault.h).
absl::StatusOr<std::string> BringLogs(SharedState& state, const Secrets& secrets,
                                      const std::string& job, int64_t sequence)
    ABSL_LOCKS_EXCLUDED(service_lock);

}  // namespace tutti::service
