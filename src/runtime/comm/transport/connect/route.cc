#include "runtime/comm/transport/connect/route.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/comm/transport/shm_channel.h"
#include "runtime/comm/transport/striped_channel.h"
#include "runtime/comm/transport/tcp_channel.h"
#include "runtime/comm/transport/tls_channel.h"
#include "runtime/comm/transport/ucx_channel.h"

namespace tutti::comm {
namespace {

using Transport = GroupOptions::Transport;
using ChannelPointer = std::unique_ptr<Channel>;

constexpr int kMostMeasuredStreams = 4;
constexpr size_t kLeastBurst = 64 << 10;
constexpr size_t kLargestBurst = 4 << 20;
constexpr double kBurstSeconds = 0.002;
constexpr double kMustWinBy = 0.9;
constexpr std::array<int, 3> kCounts = {1, 2, kMostMeasuredStreams};

absl::Status Differ(const Hello& a, const Hello& b, absl::string_view in) {
  return absl::InvalidArgumentError(absl::StrCat("ranks ", a.rank, " and ", b.rank, " differ in ",
                                                 in, ": it must be the same on all ranks"));
}

absl::StatusOr<ChannelPointer> MakeStream(const Route& route, base::UniqueFd socket, Side side,
                                          absl::string_view token, const Patience& patience) {
  if (route.encrypted) return TlsChannel::Make(std::move(socket), side, token, patience);
  return std::make_unique<TcpChannel>(std::move(socket));
}

absl::Status Sleep(Channel& channel, bool to_send, bool to_receive, const Patience& patience) {
  const short events = channel.PrepareToSleep(to_send, to_receive ? 1 : 0);
  const absl::Status waited =
      events == 0 ? absl::OkStatus() : WaitFor(channel.fd(), events, patience);
  channel.Wake();
  return waited;
}

// All of both, at once; the seconds that it took.
absl::StatusOr<double> Exchange(Channel& channel, std::span<const std::byte> out,
                                std::span<std::byte> in, const Patience& patience) {
  const absl::Duration start = base::SteadyNow();
  while (true) {
    TUTTI_ASSIGN_OR_RETURN(
        const size_t sent,
        channel.TrySend(out.first(std::min(out.size(), StripedChannel::kStripe))));
    TUTTI_ASSIGN_OR_RETURN(const size_t received, channel.TryReceive(in));
    out = out.subspan(sent);
    in = in.subspan(received);
    TUTTI_ASSIGN_OR_RETURN(const bool flushed, channel.Flush());
    if (out.empty() && in.empty() && flushed)
      return absl::ToDoubleSeconds(base::SteadyNow() - start);
    if (sent + received > 0) continue;
    TUTTI_RETURN_IF_ERROR(Sleep(channel, !out.empty(), !in.empty(), patience));
  }
}

// The opener's number to the listener, which gets it.
absl::StatusOr<size_t> Agree(Channel& channel, Side side, size_t number, const Patience& patience) {
  std::array<std::byte, 4> bytes = {};
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(number >> (8 * i));
  const bool tells = side == Side::kOpener;
  const std::span<std::byte> all(bytes);
  TUTTI_RETURN_IF_ERROR(
      Exchange(channel, tells ? all : all.first(0), tells ? all.first(0) : all, patience).status());
  number = 0;
  for (size_t i = bytes.size(); i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

// ChooseStreams finds by trying how many TCP streams a link deserves: both sides move a burst both
// ways at once over one stream, two, and four, and the opener tells the listener which was fastest.
// More streams must win by a tenth, for they cost calls. Takes about 10 ms, and at most half a
// second on a link so slow that it does not matter.
//
// Chooses on a channel that carries nothing yet; both sides must call it at once.
absl::Status ChooseStreams(StripedChannel& channel, Side side, const Patience& patience) {
  std::vector<std::byte> out(kLargestBurst), in(kLargestBurst);
  const auto burst = [&](size_t bytes) {
    return Exchange(channel, std::span(out).first(bytes), std::span(in).first(bytes), patience);
  };
  channel.UseFirst(1);
  TUTTI_ASSIGN_OR_RETURN(const double first, burst(kLeastBurst));
  const double fits = kBurstSeconds / std::max(first, 1e-9) * static_cast<double>(kLeastBurst);
  TUTTI_ASSIGN_OR_RETURN(
      size_t bytes,
      Agree(channel, side,
            static_cast<size_t>(std::clamp(fits, double{kLeastBurst}, double{kLargestBurst})),
            patience));
  bytes = std::clamp(bytes, kLeastBurst, kLargestBurst);  // it is the other side's word
  int best = 1;
  double best_seconds = std::numeric_limits<double>::infinity();
  for (const int count : kCounts) {
    channel.UseFirst(count);
    double seconds = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 2; ++round) {
      TUTTI_ASSIGN_OR_RETURN(const double took, burst(bytes));
      seconds = std::min(seconds, took);
    }
    if (seconds > best_seconds * kMustWinBy) continue;
    best = count;
    best_seconds = seconds;
  }
  channel.UseFirst(1);
  TUTTI_ASSIGN_OR_RETURN(const size_t chosen,
                         Agree(channel, side, static_cast<size_t>(best), patience));
  if (chosen < 1 || chosen > channel.streams()) {
    return absl::InvalidArgumentError("the other side chose streams that there are not");
  }
  channel.UseFirst(static_cast<int>(chosen));
  return absl::OkStatus();
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
