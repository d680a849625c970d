// PieceExchange is a fetch's part in the exchange between the nodes of a gang: which pieces this
// node fetches from the store, which others have, and what becomes of both
// (docs/decisions/070-cache-peers.md). Without peers all pieces are this node's. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "platform/storage/peers/peer_client.h"
#include "platform/storage/peers/peer_server.h"
#include "platform/storage/peers/piece_map.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

class PieceExchange {
 public:
  // `subject`: all nodes that fetch the same have it. `read` fills its bytes with a piece that was
  // published. Begins to listen; where it cannot, the others fetch this node's pieces themselves.
  PieceExchange(const std::optional<Peers>& peers, const std::vector<StoredObject>& objects,
                const std::string& subject, int64_t range_bytes,
                const std::function<absl::Status(const PieceMap::Place&, std::span<char>)>& read);

  bool has_peers() const { return client_ != nullptr; }
  const PieceMap& map() const { return map_; }
  // Makes known to the others that a piece of this node's is there; nothing of others'. `etag`: of
  // the object's version. `sha256`: of the piece, or empty.
  void Publish(int64_t piece, const std::string& etag, const std::string& sha256);
  // Fills `out` with a piece of another node's, as that one has it; an error: ask the store.
  absl::Status Fetch(int64_t piece, const std::string& etag, std::span<char> out);
  // Serves the others until they have all too, as far as they are there.
  void AwaitOthers();

 private:
  const PieceMap map_;
  std::unique_ptr<PeerClient> client_;
  std::unique_ptr<PeerServer> server_;
};

}  // namespace tutti::storage
