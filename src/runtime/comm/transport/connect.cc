#include "runtime/comm/transport/connect.h"

#include <poll.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "runtime/comm/lost_rank.h"
#include "runtime/comm/rendezvous/authenticate.h"
#include "runtime/comm/transport/shm_channel.h"
#include "runtime/comm/transport/tcp_channel.h"

namespace tutti::comm {
namespace {

using Channels = std::vector<std::unique_ptr<Channel>>;

constexpr absl::Duration kHandshake = absl::Seconds(5);
constexpr char kPurpose[] = "channel";

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
  return {base::Deadline::Sooner(patience.deadline, base::Deadline::After(kHandshake)),
          patience.interrupt};
}

absl::StatusOr<std::unique_ptr<Channel>> MakeChannel(base::UniqueFd socket, bool shares, Side side,
                                                     const Patience& patience) {
  if (shares) return ShmChannel::Make(std::move(socket), side, patience);
  return std::make_unique<TcpChannel>(std::move(socket));
}

absl::StatusOr<std::unique_ptr<Channel>> OpenTo(const Table& table, int rank, int peer,
                                                absl::string_view token, const Patience& patience) {
  const Hello& self = table.ranks[rank];
  const Hello& other = table.ranks[peer];
  TUTTI_ASSIGN_OR_RETURN(const bool shares, SharesMemory(self, other));
  absl::StatusOr<base::UniqueFd> socket =
      shares ? ConnectLocal(other.local_name, patience)
             : Connect({other.address, other.port}, self.address, patience);
  TUTTI_RETURN_IF_ERROR(socket.status());
  TUTTI_RETURN_IF_ERROR(Authenticate(socket->get(), Side::kOpener, token, kPurpose, patience));
  TUTTI_RETURN_IF_ERROR(SendMessage(socket->get(), Link{table.group, rank, peer}, patience));
  return MakeChannel(*std::move(socket), shares, Side::kOpener, patience);
}

// The next connection on either listener, and whether it came on the local one.
absl::StatusOr<std::pair<base::UniqueFd, bool>> AcceptAny(const Listeners& listeners,
                                                          const Patience& patience) {
  const Patience now{base::Deadline::After(absl::ZeroDuration())};
  while (true) {
    for (const bool local : {false, true}) {
      auto socket = Accept(local ? listeners.local.get() : listeners.tcp.get(), now);
      if (socket.ok()) return std::make_pair(*std::move(socket), local);
      if (!absl::IsDeadlineExceeded(socket.status())) return socket.status();
    }
    pollfd polled[3] = {{listeners.tcp.get(), POLLIN, 0},
                        {listeners.local.get(), POLLIN, 0},
                        {patience.interrupt, POLLIN, 0}};
    ::poll(polled, 3, patience.deadline.RemainingMillis());
    if (polled[2].revents != 0) return absl::CancelledError("interrupted");
    if (patience.deadline.Expired()) return absl::DeadlineExceededError("nobody came in time");
  }
}

// Waits for the ranks of higher number.
class Acceptor {
 public:
  Acceptor(const Table& table, int rank, const std::vector<bool>& peers, absl::string_view token,
           Channels& channels)
      : table_(table), rank_(rank), peers_(peers), token_(token), channels_(channels) {}

  absl::Status AcceptAll(const Listeners& listeners, const Patience& patience) {
    for (size_t peer = rank_ + 1; peer < peers_.size(); ++peer) {
      while (peers_[peer] && channels_[peer] == nullptr) {
        auto next = AcceptAny(listeners, patience);
        if (absl::IsDeadlineExceeded(next.status())) {
          return ErrorAboutRank(static_cast<int>(peer), absl::StatusCode::kDeadlineExceeded,
                                absl::StrCat("rank ", peer, " did not connect to rank ", rank_));
        }
        TUTTI_RETURN_IF_ERROR(next.status());
        // Strangers are overlooked.
        AcceptOne(std::move(next->first), next->second, Brief(patience)).IgnoreError();
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status AcceptOne(base::UniqueFd socket, bool local, const Patience& patience) {
    TUTTI_RETURN_IF_ERROR(Authenticate(socket.get(), Side::kListener, token_, kPurpose, patience));
    TUTTI_ASSIGN_OR_RETURN(const Message message,
                           ReceiveMessage(socket.get(), kLongestSmallMessage, patience));
    const Link* link = std::get_if<Link>(&message);
    if (link == nullptr || link->group != table_.group || link->to != rank_ ||
        link->from <= rank_ || link->from >= static_cast<int>(peers_.size()) ||
        !peers_[link->from]) {
      return absl::InvalidArgumentError("a connection of another group");
    }
    TUTTI_ASSIGN_OR_RETURN(const bool shares,
                           SharesMemory(table_.ranks[rank_], table_.ranks[link->from]));
    if (shares != local) return absl::InvalidArgumentError("it came over the wrong transport");
    TUTTI_ASSIGN_OR_RETURN(channels_[link->from],
                           MakeChannel(std::move(socket), shares, Side::kListener, patience));
    return absl::OkStatus();
  }

  const Table& table_;
  const int rank_;
  const std::vector<bool>& peers_;
  const absl::string_view token_;
  Channels& channels_;
};

}  // namespace

absl::StatusOr<Listeners> OpenListeners(const GroupOptions& options, Hello& hello) {
  Listeners listeners;
  TUTTI_ASSIGN_OR_RETURN(listeners.tcp, Listen({options.address, 0}));
  TUTTI_ASSIGN_OR_RETURN(hello.port, PortOf(listeners.tcp.get()));
  TUTTI_ASSIGN_OR_RETURN(hello.host, ThisHost());
  hello.address = options.address;
  hello.local_name = absl::StrCat("tutti-", base::RandomHex(16));
  TUTTI_ASSIGN_OR_RETURN(listeners.local, ListenLocal(hello.local_name));
  return listeners;
}

absl::StatusOr<bool> SharesMemory(const Hello& a, const Hello& b) {
  using Transport = GroupOptions::Transport;
  const bool can = a.node == b.node && a.host == b.host && a.transport != Transport::kTcp &&
                   b.transport != Transport::kTcp;
  const bool must =
      a.transport == Transport::kSharedMemory || b.transport == Transport::kSharedMemory;
  if (must && !can) {
    return absl::InvalidArgumentError(
        absl::StrCat("ranks ", a.rank, " and ", b.rank,
                     " cannot share memory, but TUTTI_TRANSPORT=shm asks for it"));
  }
  return can;
}

absl::StatusOr<Channels> ConnectChannels(const Table& table, int rank,
                                         const std::vector<bool>& peers, absl::string_view token,
                                         const Listeners& listeners, const Patience& patience) {
  // Every rank finds the same fault at once, before anybody waits for a connection.
  for (const Hello& hello : table.ranks) {
    TUTTI_RETURN_IF_ERROR(SharesMemory(table.ranks[0], hello).status());
  }
  Channels channels(peers.size());
  for (int peer = 0; peer < rank; ++peer) {
    if (!peers[peer]) continue;
    auto channel = OpenTo(table, rank, peer, token, patience);
    if (!channel.ok()) {
      return ErrorAboutRank(
          peer, channel.status().code(),
          absl::StrCat("connecting to rank ", peer, ": ", std::string(channel.status().message())));
    }
    channels[peer] = *std::move(channel);
  }
  TUTTI_RETURN_IF_ERROR(
      Acceptor(table, rank, peers, token, channels).AcceptAll(listeners, patience));
  return channels;
}

}  // namespace tutti::comm
