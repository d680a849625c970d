// Fetches files by http and https: asks what an address has, and transfers all of it into a file.
// Redirects are followed, at most five and never from https to http. A deadline limits the whole,
// with all redirects. Once `cancelled` is set, which is checked 20 times a second, a call ends with
// Cancelled, whatever it waits for. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/deadline.h"

namespace tutti::http {

struct RemoteFile {
  int64_t bytes = -1;     // -1: the server does not say
  std::string validator;  // its ETag or else its date, which changes with the content; may be empty
};

// Asks the server by HEAD, or, if it has no HEAD, by a GET of the first byte. Returns NotFound,
// PermissionDenied and the like by the answer; Unavailable, with when the server says to ask again
// (base/threads/retry_after.h); DeadlineExceeded.
absl::StatusOr<RemoteFile> Examine(const std::string& url, base::Deadline deadline,
                                   const std::atomic<bool>& cancelled);

inline constexpr char kPartEnding[] = ".part";

struct FetchOptions {
  absl::Duration timeout = absl::Hours(24);  // limits the whole
  absl::Duration stall = absl::Seconds(60);  // without a byte the connection counts as cut
  int attempts = 5;                          // that bring nothing, in a row
  // Is the pause before the second attempt; later ones are longer, or as the server asks.
  absl::Duration pause = absl::Milliseconds(500);
  // Is called, as bytes arrive, with how many of the file there are. May be empty.
  std::function<void(int64_t bytes)> progress = {};
};

// Fetches the content into `file`, which appears when it is whole: until then there is `file`.part,
// from whose end a cut transfer goes on, also a later call's, if the server still has the same
// content. DataLoss if the size is another than was promised; Unavailable at once where a server
// asks to be left alone for more than half a minute (base/threads/retry_after.h).
absl::Status FetchFile(const std::string& url, const std::filesystem::path& file,
                       const FetchOptions& options, const std::atomic<bool>& cancelled);

// Removes what FetchFile has left of `file` that is not whole.
void RemovePart(const std::filesystem::path& file);

}  // namespace tutti::http
