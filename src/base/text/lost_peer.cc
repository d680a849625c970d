#include "base/text/lost_peer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace tutti::base {
namespace {

constexpr std::array<absl::string_view, 40> kLostPeer = {
    "connection closed by peer",
    "connection closed by remote peer",  // NCCL
    "connection reset",
    "connection refused",
    "broken pipe",
    "socket closed",
    "socket has timed out",
    "socket timeout",  // c10d's store
    "failed to recv, got 0 bytes",
    "remote process exited",  // NCCL: "… or there was a network error"
    "ncclremoteerror",
    "retrieving nccluniqueid from",  // NCCL's beginning, which waits for rank 0
    "some nccl operations have failed or timed out",
    "monitoredbarrier",              // Gloo: other ranks did not come
    "collective operation timeout",  // the watchdog of c10d
    "timed out waiting",             // Gloo
    "distnetworkerror",
    "horovodinternalerror",
    "mpi_err_proc_failed",
    "lost connection to",
    "peer has left",
    "did not answer within",
    "lost rank",
    "rendezvous timed out",
    "rendezvousconnectionerror",
    "rendezvoustimeouterror",
    "rendezvousclosederror",
    "barrier timed out",    // TensorFlow
    "waiting for clients",  // c10d's store
    "wait timeout after",   // the same
    "client socket has failed to connect",
    "connectfullmesh failed",  // Gloo
    "application timeout caused pair closure",
    "communicator was aborted",  // NCCL, on the other ranks
    "no route to host",
    "connection timed out",
    "failed to connect to all addresses",  // gRPC
    "collective ops is aborted",           // TensorFlow
    "lost communication with",             // Open MPI's daemons
    "heartbeat timeout",
};

// A message has one of these after the number of the rank that it blames.
constexpr std::array<absl::string_view, 8> kVerdicts = {
    " left", " lost", " is gone", " died", " closed", " did not", " has gone", " disconnected"};

// The number that begins at `at`, and where it ends.
std::optional<std::pair<int, size_t>> NumberAt(absl::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && absl::ascii_isdigit(text[end])) ++end;
  int number = 0;
  if (!absl::SimpleAtoi(text.substr(at, end - at), &number)) return std::nullopt;
  return std::pair(number, end);
}

}  // namespace

int BlamedRank(absl::string_view last_error) {
  const std::string text = absl::AsciiStrToLower(last_error);
  if (const size_t at = text.find("lost rank "); at != std::string::npos) {
    if (const auto rank = NumberAt(text, at + 10)) return rank->first;
  }
  for (size_t at = text.find("rank "); at != std::string::npos; at = text.find("rank ", at + 1)) {
    const auto rank = NumberAt(text, at + 5);
    if (!rank) continue;
    const absl::string_view after = absl::string_view(text).substr(rank->second, 40);
    if (std::any_of(kVerdicts.begin(), kVerdicts.end(),
                    [&](absl::string_view verdict) { return absl::StrContains(after, verdict); })) {
      return rank->first;
    }
  }
  return -1;
}

bool SpeaksOfALostPeer(absl::string_view last_error) {
  if (BlamedRank(last_error) >= 0) return true;
  const std::string text = absl::AsciiStrToLower(last_error);
  if (absl::StrContains(text, "gai error: ")) return false;  // it asked for a name that is none
  const bool port_in_use =
      absl::StrContains(text, "eaddrinuse") || absl::StrContains(text, "address already in use");
  if (port_in_use) return false;  // c10d's store has one exception for all of the network
  return std::any_of(kLostPeer.begin(), kLostPeer.end(),
                     [&](absl::string_view pattern) { return absl::StrContains(text, pattern); });
}

}  // namespace tutti::base
