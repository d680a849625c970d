// Sets how long this room's tests wait for what comes at once.
#pragma once

#include "base/test_patience.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"

namespace tutti::comm {

inline Patience Within(absl::Duration time) { return {base::Deadline::After(time)}; }

inline Patience Patient() { return Within(base::Patient(absl::Seconds(20))); }

}  // namespace tutti::comm
