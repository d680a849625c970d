#include "platform/launch/mpi/gang_handshakes.h"

#include <sys/socket.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/launch/node/tcp.h"

namespace tutti::launch {
namespace {

using nlohmann::json;

constexpr size_t kMost = 2048;

}  // namespace

std::vector<pollfd> GangHandshakes::Waiting() const {
  std::vector<pollfd> waiting;
  for (const Handshake& one : all_) waiting.push_back({one.socket.fd(), POLLIN, 0});
  waiting.push_back({listener_, POLLIN, 0});
  return waiting;
}

std::vector<GangHandshakes::Peer> GangHandshakes::ReadProofs(const std::vector<pollfd>& polled) {
  std::vector<Peer> found;
  std::vector<Handshake> others;
  for (size_t i = 0; i < all_.size(); ++i) {
    Handshake& one = all_[i];
    const absl::StatusOr<bool> proved = polled[i].revents != 0 ? ReadProof(one) : false;
    if (proved.value_or(false)) {
      found.push_back({one.node, one.has_mpi, std::move(one.socket)});
    } else if (proved.ok() && !one.deadline.Expired()) {
      others.push_back(std::move(one));
    }
  }
  all_ = std::move(others);
  AcceptAll();
  return found;
}

void GangHandshakes::AcceptAll() {
  while (true) {
    base::UniqueFd fd(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.valid()) return;
    KeepAlive(fd.get());
    // Who has been silent for longest makes room: those of the job speak at once.
    if (all_.size() >= kMost) all_.erase(all_.begin());
    all_.push_back({.socket = LineSocket(std::move(fd))});
  }
}

absl::StatusOr<bool> GangHandshakes::ReadProof(Handshake& one) const {
  while (true) {
    TUTTI_ASSIGN_OR_RETURN(const std::optional<json> message, one.socket.Take());
    if (!message) return false;
    if (one.node < 0) {
      TUTTI_RETURN_IF_ERROR(Greet(*message, one));
      continue;
    }
    const std::string expected =
        Proof(plan_.job_token, absl::StrCat(one.node, " ", one.has_mpi ? 1 : 0, one.nonces));
    if (base::EqualInConstantTime(TextOf(*message, "proof"), expected)) return true;
    return absl::PermissionDeniedError("it does not hold the job's token");
  }
}

absl::Status GangHandshakes::Greet(const json& hello, Handshake& one) const {
  const auto field = hello.find("node");
  const int node = field != hello.end() && field->is_number_integer() ? field->get<int>() : -1;
  if (node < 1 || node >= static_cast<int>(plan_.nodes.size())) {
    return absl::InvalidArgumentError("no node of this job");
  }
  one.node = node;
  one.has_mpi = FlagOf(hello, "mpi");
  const std::string own = base::RandomHex(kNonceBytes);
  one.nonces = absl::StrCat(" ", TextOf(hello, "nonce"), " ", own);
  return one.socket.Send(
      {{"nonce", own}, {"proof", Proof(plan_.job_token, absl::StrCat("first", one.nonces))}});
}

}  // namespace tutti::launch
