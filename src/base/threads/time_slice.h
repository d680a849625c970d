// Asks the scheduler to run the calling thread soon after it wakes, for a short while: for threads
// that wait most of the time and hold others up when they do not come to a processor.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tutti::base {

// Sets the time slice of the calling thread, from 0.1 to 100 ms: the scheduler prefers who asks for
// less at a time (EEVDF, Linux 6.12). Its share of the processors stays what it was, and no
// privilege is needed. Kernels that know no slices change nothing. An error says what the system
// does not allow.
absl::Status SetTimeSlice(absl::Duration slice);

}  // namespace tutti::base
