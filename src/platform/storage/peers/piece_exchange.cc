#include "platform/storage/peers/piece_exchange.h"

#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/hash.h"

namespace tutti::storage {
namespace {

constexpr absl::Duration kPatienceWithOthers = absl::Seconds(10);

// Writes a version as one word of a line.
std::string VersionWord(const std::string& etag) {
  return base::Hex(base::Sha256Of(etag)).substr(0, 32);
}

}  // namespace

PieceExchange::PieceExchange(
    const std::optional<Peers>& peers, const std::vector<StoredObject>& objects,
    const std::string& subject, int64_t range_bytes,
    const std::function<absl::Status(const PieceMap::Place&, std::span<char>)>& read)
    : map_(objects, range_bytes, peers ? peers->node : 0,
           peers ? static_cast<int>(peers->addresses.size()) : 1) {
  if (!peers || peers->addresses.size() < 2) return;
  const PeerSecret secret{peers->token, subject};
  client_ = std::make_unique<PeerClient>(*peers, secret);
  auto server = PeerServer::Start(
      peers->addresses[static_cast<size_t>(peers->node)], peers->port, map_, secret,
      [this, read](int64_t piece, std::span<char> out) { return read(map_.PlaceOf(piece), out); });
  if (server.ok()) server_ = *std::move(server);
}

void PieceExchange::Publish(int64_t piece, const std::string& etag, const std::string& sha256) {
  if (server_ != nullptr && map_.IsOwn(piece)) server_->Publish(piece, VersionWord(etag), sha256);
}

absl::Status PieceExchange::Fetch(int64_t piece, const std::string& etag, std::span<char> out) {
  return client_->Fetch(map_.OwnerOf(piece), piece, VersionWord(etag), out);
}

void PieceExchange::AwaitOthers() {
  if (client_ == nullptr) return;
  const std::set<int> there = client_->TellDone();
  if (server_ != nullptr) server_->AwaitDone(there, kPatienceWithOthers);
}

}  // namespace tutti::storage
