// Reads objects of S3, Google's storage and Azure, and puts small ones of S3's, by requests of
// tutti's own, in place of the providers' libraries: these take several times the processor a byte,
// tell no checksum, and need two requests for an object of few bytes. What the store refuses is
// left to the libraries, which have words for each error. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "platform/storage/direct/store_requests.h"
#include "platform/storage/objects/object_store.h"

namespace tutti::storage {

struct ObjectHead {
  StoredObject object;
  Checksum checksum;
  bool md5_is_certain = false;  // as ObjectReader has it
  std::string version;          // the header ETag as it came; "": there is none
  bool is_sent_as_kept = true;  // false: Google may send it decompressed
};

// Opens the same object by the provider's library, without a request.
using OpenByLibrary =
    std::function<absl::StatusOr<std::unique_ptr<ObjectReader>>(const StoredObject& object)>;

class DirectObjects {
 public:
  // `requests` as it has them.
  explicit DirectObjects(std::unique_ptr<StoreRequests> requests)
      : requests_(std::move(requests)) {}

  // Asks by HEAD what the store has at the path. Nothing: it has not answered well, and who asks
  // then asks by the library. A store that has answered none of several well is asked no more.
  // Unavailable if it is too busy, or, once it has answered well, cannot be reached: asking at once
  // by other means would not help it. What it says of when to ask again is noted
  // (base/threads/retry_after.h), as by readers.
  absl::StatusOr<std::optional<ObjectHead>> Ask(const std::string& path);

  // Returns a reader of what Ask has told. It reads by requests of its own, and what the store
  // refuses of them by `by_library`.
  std::unique_ptr<ObjectReader> Read(ObjectHead head, OpenByLibrary by_library);

  // Asks for an object and its content by one request. Null, or Unavailable, as Ask; null too for
  // an object that has more than `most` bytes, or does not say how many.
  absl::StatusOr<std::unique_ptr<ObjectReader>> ReadWhole(const std::string& path, int64_t most);

  // Puts an object of S3's that has these bytes by one request, with their MD5, which the store
  // compares. False: the store did not take it, and who puts then does so by the library.
  // Unavailable as Ask.
  absl::StatusOr<bool> PutWhole(const std::string& path, absl::string_view content);

 private:
  bool IsGivenUp() const { return !has_answered_ && refusals_ >= kMostRefusals; }
  absl::Status NoteFailure(const absl::Status& status);
  absl::Status NoteAnswer(const http::ClientResponse& answer);
  std::optional<ObjectHead> HeadIn(const std::string& path, const http::ClientResponse& answer);

  static constexpr int kMostRefusals = 3;
  const std::unique_ptr<StoreRequests> requests_;
  std::atomic<bool> has_answered_ = false;
  std::atomic<int> refusals_ = 0;  // before the first good answer
};

}  // namespace tutti::storage
