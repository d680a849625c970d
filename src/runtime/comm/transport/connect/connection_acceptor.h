// ConnectionAcceptor accepts the connections that come to this rank's listeners. Each proves the
// job's token and says which rank's it is on a thread of its own, so that a stranger that connects
// and says nothing holds nobody up; those that fail are overlooked.
//
// At most kMostAtOnce are heard at a time, each for kHandshake: whoever comes meanwhile waits in
// the system's queue. Those that have passed wait here, also between the calls of Next.
//
// Thread-compatible.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "runtime/comm/rendezvous/handshake_threads.h"
#include "runtime/comm/rendezvous/wire/control_message.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"

namespace tutti::comm {

inline constexpr char kChannelPurpose[] = "channel";

// Where the ranks of higher number will connect to. Opened before the rendezvous, told in Hello.
struct Listeners {
  base::UniqueFd tcp;
  base::UniqueFd local;
  absl::Status rdma;  // of CheckRdma, where it may be used
};

class ConnectionAcceptor {
 public:
  static constexpr absl::Duration kHandshake = absl::Seconds(5);
  static constexpr size_t kMostAtOnce = 64;

  struct Incoming {
    uint64_t number;  // in the order in which they were accepted, not that in which they passed
    base::UniqueFd socket;
    bool local;
    Link link;
  };

  ConnectionAcceptor(std::string token, Listeners listeners);
  ~ConnectionAcceptor();

  // Returns the next that has passed. Cancelled, or DeadlineExceeded when nobody came in time.
  absl::StatusOr<Incoming> Next(const Patience& patience);

 private:
  bool TakePassed(Incoming& incoming);
  absl::Status AcceptAll();
  void Wait(const Patience& patience);
  void Handshake(uint64_t number, base::UniqueFd socket, bool local);
  absl::StatusOr<Link> ReceiveLink(int socket) const;

  const std::string token_;
  const Listeners listeners_;
  const base::UniqueFd stop_fd_;
  const base::UniqueFd news_fd_;
  uint64_t accepted_ = 0;
  base::Deadline rests_until_;  // the listeners
  HandshakeThreads handshakes_;
  std::mutex mutex_;  // guards what follows
  std::deque<Incoming> passed_;
};

}  // namespace tutti::comm
