// service_lock is the one mutex of a service as the compiler's thread annotations know it. Its
// classes share the mutex, and the analysis can not tell that a reference to it in one class is
// that in another: so they name this role, which StateLock (shared_state.h) holds as long as it
// holds the mutex.
#pragma once

#include "absl/base/thread_annotations.h"

namespace tutti::service {

class ABSL_LOCKABLE ServiceLock {};
inline ServiceLock service_lock;

}  // namespace tutti::service
