// Says whether Arrow's library can run on this processor.
#pragma once

#include "absl/status/status.h"

namespace tutti::storage {

// FailedPrecondition on x86 that is older than x86-64-v2: Arrow's library is made for that, and its
// initialisers would end the process by SIGILL. Needs no initialiser to have run.
absl::Status CheckProcessorForArrow();

}  // namespace tutti::storage
