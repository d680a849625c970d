// Reads from an answer how long its server asks to be left alone.
#pragma once

#include "absl/time/time.h"
#include "platform/http/client/client.h"

namespace tutti::http {

// Returns what the header Retry-After says, by RFC 9110 (10.2.3) a number of seconds or a time, of
// any answer: a time counts from the answer's own Date, as the two clocks may differ, or else from
// `now`. 0 if there is none, it is none, or that time has passed.
absl::Duration RetryAfterIn(const ClientResponse& answer, absl::Time now);

}  // namespace tutti::http
