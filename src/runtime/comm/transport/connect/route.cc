#include "runtime/comm/transport/connect/route.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/comm/transport/shm_channel.h"
#include "runtime/comm/transport/stream_count.h"
#include "runtime/comm/transport/striped_channel.h"
#include "runtime/comm/transport/tcp_channel.h"
#include "runtime/comm/transport/tls_channel.h"
#include "runtime/comm/transport/ucx_channel.h"

namespace tutti::comm {
namespace {

using Transport = GroupOptions::Transport;
using ChannelPointer = std::unique_ptr<Channel>;

absl::Status Differ(const Hello& a, const Hello& b, absl::string_view in) {
  return absl::InvalidArgumentError(absl::StrCat("ranks ", a.rank, " and ", b.rank, " differ in ",
                                                 in, ": it must be the same on all ranks"));
}

absl::StatusOr<ChannelPointer> MakeStream(const Route& route, base::UniqueFd socket, Side side,
                                          absl::string_view token, const Patience& patience) {
  if (route.encrypted) return TlsChannel::Make(std::move(socket), side, token, patience);
  return std::make_unique<TcpChannel>(std::move(socket));
}

// UCX takes two network namespaces (containers) of one machine for one host and shares memory
// between them, but cannot wake a sleeper there: its doorbell is a Unix socket of the namespace.
std::string UcxTransports(const Route& route) {
  return route.same_host || std::getenv("UCX_TLS") != nullptr ? "" : "^shm";
}

}  // namespace

int Route::Connections() const {
  if (kind != Kind::kTcp) return 1;
  return streams > 0 ? streams : kMostMeasuredStreams;
}

absl::StatusOr<bool> SharesMemory(const Hello& a, const Hello& b) {
  const auto may = [](const Hello& hello) {
    return hello.transport == Transport::kAuto || hello.transport == Transport::kSharedMemory;
  };
  const bool can = a.node == b.node && a.host == b.host && may(a) && may(b);
  const bool must =
      a.transport == Transport::kSharedMemory || b.transport == Transport::kSharedMemory;
  if (must && !can) {
    return absl::InvalidArgumentError(
        absl::StrCat("ranks ", a.rank, " and ", b.rank,
                     " cannot share memory, but TUTTI_TRANSPORT=shm asks for it"));
  }
  return can;
}

absl::StatusOr<Route> RouteBetween(const Hello& a, const Hello& b) {
  if (a.encrypt != b.encrypt) return Differ(a, b, "TUTTI_COMM_TLS");
  if (a.streams != b.streams) return Differ(a, b, "TUTTI_COMM_STREAMS");
  // One that measures would wait for one that does not; one that compares calls would take the
  // other's data for a call.
  if (a.deterministic != b.deterministic) return Differ(a, b, "TUTTI_COMM_DETERMINISTIC");
  if (a.check_calls != b.check_calls) return Differ(a, b, "TUTTI_COMM_CHECK");
  const bool ucx = a.transport == Transport::kUcx;
  if (ucx != (b.transport == Transport::kUcx)) return Differ(a, b, "TUTTI_TRANSPORT=ucx");
  if (ucx && a.encrypt) {
    return absl::InvalidArgumentError("TLS goes over TCP: TUTTI_TRANSPORT=ucx cannot encrypt");
  }
  if (ucx) return Route{Route::Kind::kUcx, false, 1, a.host == b.host};
  TUTTI_ASSIGN_OR_RETURN(const bool shares, SharesMemory(a, b));
  if (shares) return Route{Route::Kind::kSharedMemory, false, 1};
  if (a.rdma && b.rdma) return Route{Route::Kind::kUcx, false, 1, a.host == b.host};
  return Route{Route::Kind::kTcp, a.encrypt, a.streams};
}

absl::StatusOr<ChannelPointer> MakeChannel(const Route& route, std::vector<base::UniqueFd> sockets,
                                           Side side, absl::string_view token,
                                           const Patience& patience) {
  if (route.kind == Route::Kind::kSharedMemory) {
    return ShmChannel::Make(std::move(sockets[0]), side, patience);
  }
  if (route.kind == Route::Kind::kUcx) {
    auto channel = MakeUcxChannel(std::move(sockets[0]), UcxTransports(route), patience);
    return channel.ok()
               ? std::move(channel)
               : base::Annotate(channel.status(), "by UCX (TUTTI_TRANSPORT=tcp does without)");
  }
  std::vector<ChannelPointer> streams;
  for (base::UniqueFd& socket : sockets) {
    TUTTI_ASSIGN_OR_RETURN(auto stream,
                           MakeStream(route, std::move(socket), side, token, patience));
    streams.push_back(std::move(stream));
  }
  if (streams.size() == 1) return std::move(streams[0]);
  TUTTI_ASSIGN_OR_RETURN(auto striped, StripedChannel::Make(std::move(streams)));
  if (route.streams == 0) TUTTI_RETURN_IF_ERROR(ChooseStreams(*striped, side, patience));
  return ChannelPointer(std::move(striped));
}

}  // namespace tutti::comm
