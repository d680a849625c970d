// Authenticate proves to both ends of a connection that the other knows the job's token, before
// either believes anything that the other says:
//
//   opener                                              listener
//     magic, version, nonce A            ------------>
//                                        <------------  magic, version, nonce B,
//                                                       HMAC(token, "listener" purpose A B)
//     HMAC(token, "opener" purpose A B)  ------------>
//
// The token itself never travels. Both nonces are in both proofs, so a recorded one is worth
// nothing; the proofs differ in their first word, so a listener's proof cannot be sent back to it
// as an opener's (reflection); the purpose keeps a proof for one use from serving another. All
// parts have a fixed length: nothing is parsed. Connections are authenticated, not encrypted.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"

namespace tutti::comm {

enum class Side { kOpener, kListener };

// Proves both sides to each other. PermissionDenied when the other side does not know the token,
// FailedPrecondition when it speaks another version, InvalidArgument when it is no tutti at all,
// Unavailable when it goes away.
absl::Status Authenticate(int fd, Side side, absl::string_view token, absl::string_view purpose,
                          const Patience& patience);

}  // namespace tutti::comm
