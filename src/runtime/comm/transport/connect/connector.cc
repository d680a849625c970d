#include "runtime/comm/transport/connect/connector.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "runtime/comm/lost_rank.h"
#include "runtime/comm/rendezvous/authenticate.h"
#include "runtime/comm/transport/connect/ucx_rdma.h"
#include "runtime/comm/transport/ucx_channel.h"

namespace tutti::comm {
namespace {

// Equal for processes that can reach each other's abstract Unix sockets: same boot of the same
// machine, same network namespace.
absl::StatusOr<std::string> ThisHost() {
  TUTTI_ASSIGN_OR_RETURN(const std::string boot,
                         base::ReadFile("/proc/sys/kernel/random/boot_id", 4096));
  char space[64] = {};
  if (::readlink("/proc/self/ns/net", space, sizeof(space) - 1) < 0) {
    return base::ErrnoStatus("readlink /proc/self/ns/net");
  }
  return absl::StrCat(boot.substr(0, boot.find('\n')), " ", space);
}

Patience Brief(const Patience& patience) {
  return {base::Deadline::Sooner(patience.deadline,
                                 base::Deadline::After(ConnectionAcceptor::kHandshake)),
          patience.interrupt};
}

}  // namespace

absl::StatusOr<Listeners> OpenListeners(const GroupOptions& options, Hello& hello) {
  if (options.tcp_streams < 0 || options.tcp_streams > kMostTcpStreams) {
    return absl::InvalidArgumentError(absl::StrCat(options.tcp_streams, " TCP streams"));
  }
  Listeners listeners;
  TUTTI_ASSIGN_OR_RETURN(listeners.tcp, Listen({options.address, 0}));
  TUTTI_ASSIGN_OR_RETURN(hello.port, PortOf(listeners.tcp.get()));
  TUTTI_ASSIGN_OR_RETURN(hello.host, ThisHost());
  hello.address = options.address;
  hello.encrypt = options.encrypt;
  hello.streams = options.tcp_streams;
  hello.deterministic = options.deterministic;
  hello.check_calls = options.check_calls;
  if (MayUseRdma(hello)) {
    listeners.rdma = CheckRdma();
    hello.rdma = listeners.rdma.ok();
  }
  hello.local_name = absl::StrCat("tutti-", base::RandomHex(16));
  TUTTI_ASSIGN_OR_RETURN(listeners.local, ListenLocal(hello.local_name));
  return listeners;
}

Connector::Connector(Table table, int rank, std::string token, Listeners listeners)
    : table_(std::move(table)),
      rank_(rank),
      token_(std::move(token)),
      reached_(table_.ranks.size(), false),
      kept_(table_.ranks.size()),
      acceptor_(token_, std::move(listeners)) {}

absl::StatusOr<std::unique_ptr<Connector>> Connector::Make(Table table, int rank, std::string token,
                                                           Listeners listeners) {
  for (const Hello& hello : table.ranks) {
    TUTTI_ASSIGN_OR_RETURN(const Route route, RouteBetween(table.ranks[0], hello));
    if (route.kind == Route::Kind::kUcx) TUTTI_RETURN_IF_ERROR(CheckUcx());
    if (route.encrypted && token.empty()) {
      return absl::InvalidArgumentError("TUTTI_COMM_TLS=1 needs a token (TUTTI_JOB_TOKEN)");
    }
  }
  if (rank == 0) {
    const std::string unused = UnusedRdma(table.ranks, listeners.rdma);
    if (!unused.empty()) spdlog::warn("{}", unused);
  }
  return std::unique_ptr<Connector>(
      new Connector(std::move(table), rank, std::move(token), std::move(listeners)));
}

absl::StatusOr<std::unique_ptr<Channel>> Connector::Connect(int peer, const Patience& patience) {
  if (peer > rank_) {
    TUTTI_RETURN_IF_ERROR(Await(peer, patience));
    return std::move(kept_[peer]);
  }
  auto channel = Open(peer, patience);
  if (channel.ok()) return channel;
  return ErrorAboutRank(
      peer, channel.status().code(),
      absl::StrCat("connecting to rank ", peer, ": ", std::string(channel.status().message())));
}

absl::StatusOr<std::vector<std::unique_ptr<Channel>>> Connector::ConnectAll(
    const std::vector<bool>& peers, const Patience& patience) {
  std::vector<std::unique_ptr<Channel>> channels(peers.size());
  for (size_t peer = 0; peer < peers.size(); ++peer) {
    if (!peers[peer]) continue;
    TUTTI_ASSIGN_OR_RETURN(channels[peer], Connect(static_cast<int>(peer), patience));
  }
  return channels;
}

absl::StatusOr<base::UniqueFd> Connector::OpenOne(int peer, const Route& route,
                                                  const Patience& patience) {
  const Hello& other = table_.ranks[peer];
  absl::StatusOr<base::UniqueFd> socket =
      route.kind == Route::Kind::kSharedMemory
          ? ConnectLocal(other.local_name, patience)
          : comm::Connect({other.address, other.port}, table_.ranks[rank_].address, patience);
  TUTTI_RETURN_IF_ERROR(socket.status());
  TUTTI_RETURN_IF_ERROR(
      Authenticate(socket->get(), Side::kOpener, token_, kChannelPurpose, patience));
  TUTTI_RETURN_IF_ERROR(SendMessage(socket->get(), Link{table_.group, rank_, peer}, patience));
  return socket;
}

// One connection after the other: the listener keeps them in the order in which they come.
absl::StatusOr<std::unique_ptr<Channel>> Connector::Open(int peer, const Patience& patience) {
  TUTTI_ASSIGN_OR_RETURN(const Route route, RouteBetween(table_.ranks[rank_], table_.ranks[peer]));
  std::vector<base::UniqueFd> sockets;
  for (int i = 0; i < route.Connections(); ++i) {
    TUTTI_ASSIGN_OR_RETURN(base::UniqueFd socket, OpenOne(peer, route, patience));
    sockets.push_back(std::move(socket));
  }
  return MakeChannel(route, std::move(sockets), Side::kOpener, token_, patience);
}

absl::Status Connector::Await(int peer, const Patience& patience) {
  while (kept_[peer] == nullptr) {
    auto next = acceptor_.Next(patience);
    if (absl::IsDeadlineExceeded(next.status())) {
      return ErrorAboutRank(peer, absl::StatusCode::kDeadlineExceeded,
                            absl::StrCat("rank ", peer, " did not connect to rank ", rank_));
    }
    TUTTI_RETURN_IF_ERROR(next.status());
    // Strangers are overlooked.
    Admit(*std::move(next), Brief(patience)).IgnoreError();
  }
  return absl::OkStatus();
}

absl::Status Connector::Admit(ConnectionAcceptor::Incoming incoming, const Patience& patience) {
  const Link& link = incoming.link;
  if (link.group != table_.group || link.to != rank_ || link.from <= rank_ ||
      link.from >= static_cast<int>(table_.ranks.size()) || reached_[link.from]) {
    return absl::InvalidArgumentError("a connection of another group");
  }
  TUTTI_ASSIGN_OR_RETURN(const Route route,
                         RouteBetween(table_.ranks[rank_], table_.ranks[link.from]));
  if ((route.kind == Route::Kind::kSharedMemory) != incoming.local) {
    return absl::InvalidArgumentError("it came over the wrong transport");
  }
  auto& some = some_[link.from];
  some[incoming.number] = std::move(incoming.socket);
  if (static_cast<int>(some.size()) < route.Connections()) return absl::OkStatus();
  std::vector<base::UniqueFd> all;
  for (auto& [number, socket] : some) all.push_back(std::move(socket));
  some_.erase(link.from);
  TUTTI_ASSIGN_OR_RETURN(kept_[link.from],
                         MakeChannel(route, std::move(all), Side::kListener, token_, patience));
  reached_[link.from] = true;
  return absl::OkStatus();
}

}  // namespace tutti::comm
