// StreamServer gives the objects of a place to processes of this machine over a Unix socket, in
// lines of text (docs/formats/stream.md). It ends when nobody has been connected for a while, so
// that who starts it need not end it; a second one at the same socket ends at once. One thread a
// connection.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/stream/streamed_objects.h"

namespace tutti::stream {

struct ServerOptions {
  std::filesystem::path socket;  // at most 107 bytes; beside it lies SOCKET.lock
  absl::Duration linger = absl::Seconds(10);
  // Makes of an error what a reader is told: one line that names the place, without a secret.
  std::function<absl::Status(const absl::Status&)> tell = [](const absl::Status& status) {
    return status;
  };
};

// Tells an error to those who wait, for two seconds, while what is served is still being opened;
// else does nothing. By another thread than the opener's, which may hang, and which then ends the
// process.
using GiveUp = std::function<void(const absl::Status&)>;
// Opens what is served; called once, when the socket is there, so that who connects waits.
// `give_up` holds until Serve returns.
using Opener =
    std::function<absl::StatusOr<std::unique_ptr<StreamedObjects>>(const GiveUp& give_up)>;

// Serves until nobody is connected any more. Blocks. OK too if another process serves there. An
// error of `open` is told to each who connects, and returned.
absl::Status Serve(const ServerOptions& options, const Opener& open);

}  // namespace tutti::stream
