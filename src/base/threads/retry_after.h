// Notes on an error how long who refused asks to be left alone, as HTTP's Retry-After does (RFC
// 9110, 10.2.3), for who asks again (retry_pause.h). The note is a payload of the status, which
// stays with it on the way up. Pure functions; thread-safe.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tutti::base {

// A server's clock may be wrong, and a job waits: more than that is not heeded (but for the quarter
// that RetryPause adds by chance).
inline constexpr absl::Duration kLongestRetryAfter = absl::Minutes(2);

// Notes the time, of which kLongestRetryAfter counts at most; nothing of one that is not above 0.
// OK stays OK.
absl::Status WithRetryAfter(absl::Status status, absl::Duration told);
// Returns what was noted, in whole milliseconds; 0 if nothing was.
absl::Duration RetryAfterOf(const absl::Status& status);

}  // namespace tutti::base
