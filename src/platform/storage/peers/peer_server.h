// PeerServer gives the pieces that this node has fetched from the store to the other nodes of its
// gang (docs/decisions/070-cache-peers.md). One that is asked for a piece which is not there yet
// says so again and again, as long as its own fetch goes on, and gives it when it is there:
//
//   "get PIECE VERSION"  ->  "wait", any number of times, then "piece SHA256 BYTES" and the bytes,
//                            or "no"
//   "done"                   the asker has all that it needs
//
// A thread for each connection. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "platform/storage/peers/peer_stream.h"
#include "platform/storage/peers/piece_map.h"

namespace tutti::storage {

class PeerServer {
 public:
  // Fills `out` with a piece that was published, from this node's disk.
  using ReadPiece = std::function<absl::Status(int64_t piece, std::span<char> out)>;

  // Listens at a numeric address. `map` outlives it. An error if the port is taken: then nobody is
  // served.
  static absl::StatusOr<std::unique_ptr<PeerServer>> Start(const std::string& address, int port,
                                                           const PieceMap& map, PeerSecret secret,
                                                           ReadPiece read);
  // Ends all connections.
  ~PeerServer();

  // Says that a piece is there, in that version. `sha256` of its bytes; empty: it is read for that
  // when it is asked for.
  void Publish(int64_t piece, const std::string& version, const std::string& sha256);
  // Waits until each of those nodes has said that it needs nothing more, or nobody has asked for
  // anything for `patience`.
  void AwaitDone(std::set<int> nodes, absl::Duration patience);
  // Returns the bytes of pieces that were sent.
  int64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct There {
    std::string version, sha256;
  };

  PeerServer(base::UniqueFd listener, const PieceMap& map, PeerSecret secret, ReadPiece read);
  void Accept();
  void Serve(PeerStream& stream);
  void JoinEnded();
  absl::Status Answer(PeerStream& stream, absl::string_view request, std::vector<char>& buffer);
  absl::StatusOr<There> AwaitPiece(PeerStream& stream, int64_t piece);

  const base::UniqueFd listener_;
  const PieceMap& map_;
  const PeerSecret secret_;
  const ReadPiece read_;
  std::atomic<int64_t> bytes_sent_ = 0;
  absl::Mutex mutex_;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<int64_t, There> there_ ABSL_GUARDED_BY(mutex_);
  std::set<int> done_ ABSL_GUARDED_BY(mutex_);
  absl::Duration last_word_ ABSL_GUARDED_BY(mutex_);                 // of anybody who asks
  absl::Duration last_piece_ ABSL_GUARDED_BY(mutex_);                // that was published
  std::map<PeerStream*, std::thread> open_ ABSL_GUARDED_BY(mutex_);  // connections, and who serves
  std::vector<std::thread> ended_ ABSL_GUARDED_BY(mutex_);           // to be joined
  std::thread accepts_;
};

}  // namespace tutti::storage
