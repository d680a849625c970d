// Reads from an answer how long its server asks clients to wait.
#pragma once

#include "absl/time/time.h"
#include "http/client/client.h"

namespace tutti::http {

// Returns what the header Retry-After says, which is a number of seconds or a time (RFC 9110,
// 10.2.3). A time is compared with the answer's own Date, since the clocks may differ, or else with
// `now`. 0 if there is no such header, if it makes no sense, or if that time has passed.
absl::Duration RetryAfterIn(const ClientResponse& answer, absl::Time now);

}  // namespace tutti::http
