// Waits until a job has ended, by asking the service now and then, without showing its output.
#pragma once

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "platform/client/connection/connection.h"
#include "platform/client/connection/outage.h"

namespace tutti::client {

struct WaitOptions {
  base::Deadline deadline = base::Deadline::After(absl::InfiniteDuration());
  absl::Duration first_pause = absl::Milliseconds(20);  // between two looks; doubles ...
  absl::Duration longest_pause = absl::Seconds(1);      // ... up to this
  absl::Duration give_up_after = kGiveUpAfter;          // without the service
};

// Returns the ended job, as JSON. Asks also while the service is away, each time by a connection of
// its own, so that one that came back at another address is found. DeadlineExceeded if the job has
// not ended by the deadline. If the service was away then, or for `give_up_after`: its last error,
// Unavailable as a rule.
absl::StatusOr<std::string> WaitForEnd(const Connect& connect, const std::string& id,
                                       const WaitOptions& options = {});

// Returns the job that `name` means (choose_job.h), asked also while the service is away, which
// `remarks` are told once; a service that was never there (outage.h) is not waited for. The same
// errors as WaitForEnd's and ResolveJob's.
absl::StatusOr<std::string> ResolveOnceThere(const Connect& connect, const std::string& name,
                                             const WaitOptions& options, std::ostream& remarks);

}  // namespace tutti::client
