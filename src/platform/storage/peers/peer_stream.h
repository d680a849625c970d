// PeerStream is a connection between the tutti-storage of two nodes: lines, and blocks of bytes. At
// its begin both prove that they hold the job's token, and mean the same list of objects:
//
//   asker -> owner:  "tutti-pieces NODE A"
//   owner -> asker:  "B HMAC(token, "owner" SUBJECT NODE A B)"
//   asker -> owner:  "HMAC(token, "asker" SUBJECT NODE A B)"
//
// Each wait for the far end is bounded. Not thread-safe, but for Shutdown.
#pragma once

#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace tutti::storage {

// PeerSecret is what both ends must agree on.
struct PeerSecret {
  std::string token;
  std::string subject;  // the digest of the list of objects
};

class PeerStream {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(10);  // with the far end's next bytes

  // Takes a connected socket.
  explicit PeerStream(base::UniqueFd fd);
  // Connects to a numeric address. Unavailable if nobody listens there; DeadlineExceeded.
  static absl::StatusOr<PeerStream> Connect(const std::string& address, int port);

  // Proves and demands the proof; PermissionDenied if the far end does not hold the secret.
  absl::Status IntroduceAsAsker(int node, const PeerSecret& secret);
  // Returns which node asks.
  absl::StatusOr<int> IntroduceAsOwner(const PeerSecret& secret);

  // `line` has no end of its own. Unavailable if the far end has gone or takes nothing.
  absl::Status SendLine(absl::string_view line);
  absl::Status Send(std::span<const char> bytes);
  // Returns the next line without its end; InvalidArgument if it is too long.
  absl::StatusOr<std::string> ReceiveLine();
  absl::Status Receive(std::span<char> bytes);

  // Has all waits end; from any thread.
  void Shutdown() const;

 private:
  absl::Status Fill();

  base::UniqueFd fd_;
  std::string read_;  // what has come beyond the last line
};

}  // namespace tutti::storage
