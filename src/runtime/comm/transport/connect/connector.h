// Connector makes the channels between the ranks that have met: shared memory between ranks of one
// node, TCP between nodes, unless the options say otherwise.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/rendezvous/wire/control_message.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"
#include "runtime/comm/transport/connect/connection_acceptor.h"
#include "runtime/comm/transport/connect/route.h"
#include "runtime/comm/transport/transport.h"

namespace tutti::comm {

// Fills in `hello`'s address, port, local_name and host, and what all ranks must have alike.
absl::StatusOr<Listeners> OpenListeners(const GroupOptions& options, Hello& hello);

// Makes this rank's channels to the others, each when it is first asked for.
//
// When two ranks want a channel, the one with the higher number connects and the other one accepts.
// While a rank waits for one connection it answers all that come, and keeps those that it has not
// asked for yet. No two ranks can wait for each other crosswise: a rank that reaches several others
// does so in the order of their numbers, so it connects to lower ones first. Along any chain of
// ranks that wait for a connection to be answered the numbers fall, so the last rank of such a
// chain accepts, and so answers.
//
// Thread-compatible.
class Connector {
 public:
  // Makes a connector. InvalidArgument when two ranks insist on different transports (see
  // RouteBetween), FailedPrecondition when this one cannot do what they agree on.
  static absl::StatusOr<std::unique_ptr<Connector>> Make(Table table, int rank, std::string token,
                                                         Listeners listeners);

  // Returns the channel to `peer`, which has to reach this rank too; once for every peer. Cancelled
  // when `patience.interrupt` says that the group has ended meanwhile.
  absl::StatusOr<std::unique_ptr<Channel>> Connect(int peer, const Patience& patience);

  // Returns the channels to those that `peers` says, else null; who is a peer is mutual.
  absl::StatusOr<std::vector<std::unique_ptr<Channel>>> ConnectAll(const std::vector<bool>& peers,
                                                                   const Patience& patience);

  // Returns whether a connection of `peer`'s has come and waits to be asked for.
  bool HasCome(int peer) const { return kept_[peer] != nullptr; }

  const Table& table() const { return table_; }
  const std::string& token() const { return token_; }

 private:
  Connector(Table table, int rank, std::string token, Listeners listeners);
  absl::StatusOr<std::unique_ptr<Channel>> Open(int peer, const Patience& patience);
  absl::Status Await(int peer, const Patience& patience);
  absl::Status Admit(ConnectionAcceptor::Incoming incoming, const Patience& patience);
  absl::StatusOr<base::UniqueFd> OpenOne(int peer, const Route& route, const Patience& patience);

  const Table table_;
  const int rank_;
  const std::string token_;
  std::vector<bool> reached_;
  std::vector<std::unique_ptr<Channel>> kept_;  // came before they were asked for
  // The connections of routes that do not have as many yet as they take, in the order in which they
  // came.
  std::map<int, std::map<uint64_t, base::UniqueFd>> some_;
  ConnectionAcceptor acceptor_;
};

}  // namespace tutti::comm
