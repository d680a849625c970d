// PeerClient asks the other nodes of a gang for the pieces that they fetch from the store
// (peer_server.h). One that does not answer as it should is asked no more: its pieces come from the
// store. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "platform/storage/peers/peer_stream.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

class PeerClient {
 public:
  PeerClient(Peers peers, PeerSecret secret);

  // Fills `out` with a piece of that version, as `node` has it; its hash is compared. After an
  // error the bytes are anything. Blocks as long as the node says that it will have it.
  absl::Status Fetch(int node, int64_t piece, const std::string& version, std::span<char> out);
  // Tells all nodes that are there that this one needs nothing more; returns which these are.
  std::set<int> TellDone();
  // Returns the bytes of pieces that have come.
  int64_t bytes_received() const { return bytes_received_; }

 private:
  struct Node {
    std::vector<PeerStream> idle;
    bool was_met = false, is_lost = false;
  };

  absl::StatusOr<PeerStream> Take(int node);
  absl::StatusOr<PeerStream> Connect(int node);
  absl::Status Ask(PeerStream& stream, int64_t piece, const std::string& version,
                   std::span<char> out);
  void Return(int node, PeerStream stream);

  const Peers peers_;
  const PeerSecret secret_;
  const absl::Duration meet_until_;  // SteadyNow
  std::atomic<int64_t> bytes_received_ = 0;
  absl::Mutex mutex_;
  std::vector<Node> nodes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::storage
