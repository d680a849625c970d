// Makes and uses stream sockets as the room needs them: non-blocking underneath, every wait with a
// deadline, never a SIGPIPE, closed on exec. TCP between nodes, and Unix sockets of the abstract
// namespace between ranks of one node, which can hand each other descriptors (descriptors.h).
// Functions are thread-safe.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/deadline.h"
#include "base/unique_fd.h"
#include "runtime/comm/rendezvous/wire/control_message.h"

namespace tutti::comm {

struct Endpoint {
  std::string host;  // numeric, or a name
  int port = 0;
  std::string ToString() const;
};

// How long a wait may last: until the deadline, or until `interrupt` becomes readable (Cancelled).
struct Patience {
  base::Deadline deadline;
  int interrupt = -1;
};

// Waits until one of `events` (POLLIN, POLLOUT) or an error can be had from `fd`.
absl::Status WaitFor(int fd, short events, const Patience& patience);
// Waits so long, before another attempt at what nothing tells when it will succeed.
absl::Status Pause(absl::Duration pause, const Patience& patience);

// Returns how long a name may take to be looked up where nobody says (numeric addresses take no
// time).
inline Patience ForOneLookup() { return {base::Deadline::After(absl::Seconds(10))}; }

// Listens at the first of the host's addresses that this node has. Port 0 picks a free one. If a
// name has addresses of both families, those of `like`'s are taken.
absl::StatusOr<base::UniqueFd> Listen(const Endpoint& at, const std::string& like = "",
                                      const Patience& patience = ForOneLookup());
absl::StatusOr<base::UniqueFd> ListenLocal(absl::string_view name);
absl::StatusOr<int> PortOf(int socket);

// Returns the own address from which packets to `to` leave.
absl::StatusOr<std::string> AddressToward(const Endpoint& to,
                                          const Patience& patience = ForOneLookup());

absl::StatusOr<base::UniqueFd> Accept(int listener, const Patience& patience);

// Makes one attempt at each of the host's addresses, from the address `source` ("": any), which
// share the time. Unavailable when nobody listens there.
absl::StatusOr<base::UniqueFd> Connect(const Endpoint& to, const std::string& source,
                                       const Patience& patience);
// Waits for a place in the listener's queue. Unavailable when nobody listens.
absl::StatusOr<base::UniqueFd> ConnectLocal(absl::string_view name, const Patience& patience);

// Returns Unavailable: what every kind of connection says when the other side is gone.
absl::Status ConnectionClosed();

// Sends all of the bytes, or returns ConnectionClosed.
absl::Status Send(int fd, absl::string_view bytes, const Patience& patience);
absl::StatusOr<std::string> Receive(int fd, size_t bytes, const Patience& patience);

absl::Status SendMessage(int fd, const Message& message, const Patience& patience);
// Receives a message; InvalidArgument when it is longer than `longest` or malformed.
absl::StatusOr<Message> ReceiveMessage(int fd, size_t longest, const Patience& patience);

// Returns whether the other side has closed and nothing is left to read.
bool IsClosed(int fd);

}  // namespace tutti::comm
