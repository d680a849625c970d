// Makes a Channel over UCX (UCP streams), for what UCX knows and we do not: InfiniBand, RoCE, and
// other vendors' fabrics. Over TCP or shared memory our own channels are faster; there it is for
// tests.
//
// The authenticated socket carries the address of either side's worker and then stays, idle, as the
// line that closes when the other process ends, however that happens. A side that closes in good
// order first says on it how many bytes it has sent, since UCX may deliver them later than the
// socket its end, and waits up to 0.2 s until the other side has them or closes as well (a
// side that does not look at the channel for so long may lose them, and hears that it has).
//
// Bytes are copied into one of a few blocks and sent from there, for the caller may change them at
// once, while UCX takes its time; when no block is free there is no room. Flush waits for the
// blocks. Both sides have exchanged a byte before MakeUcxChannel returns, so no message of UCX's
// own set-up is outstanding later, for which an idle rank would be needed.
//
// Thread-compatible: a worker of its own. UCX gives no event for room in a shared-memory queue, so
// a sleeper with unsent bytes looks again every 0.2 ms.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "runtime/comm/rendezvous/authenticate.h"
#include "runtime/comm/transport/transport.h"

namespace tutti::comm {

// Makes a channel; `transports`: UCX's own choice of them (UCX_TLS), "" for its default.
// FailedPrecondition when tutti was built without UCX or it is not installed.
absl::StatusOr<std::unique_ptr<Channel>> MakeUcxChannel(base::UniqueFd socket,
                                                        const std::string& transports,
                                                        const Patience& patience);

// Returns OK when MakeUcxChannel can work here.
absl::Status CheckUcx();

// Returns OK when UCX finds a device for one of `transports` and may use it; else what is missing.
absl::Status ProbeUcx(const std::string& transports);

}  // namespace tutti::comm
