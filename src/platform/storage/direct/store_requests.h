// Makes requests about the objects of one container as its store takes them: the address, the
// signature, a connection that an earlier request has left. Of S3, Google's storage by its XML
// interface, and Azure's blobs. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "http/client/transfer.h"
#include "platform/storage/direct/bearer_token.h"
#include "platform/storage/signing/shared_key.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

// Whose words are spoken; Google's to the container of kS3 too, where its HMAC keys are used.
enum class StoreWords { kS3, kGoogle, kAzure };

struct ObjectRequest {
  std::string method = "GET";  // or HEAD; of S3 also PUT
  std::string path;            // in the container
  // The bytes from the first on, as many as the second says; nothing: all of them.
  std::optional<std::pair<int64_t, int64_t>> range = {};
  absl::string_view body = {};  // of a PUT
  std::string body_md5 = {};    // of a PUT, in base64: the store compares it
  // These are as in http::TransferRequest.
  std::function<absl::Status(const http::ClientResponse& header)> on_header = {};
  http::ChunkCallback on_chunk = {};
};

class StoreRequests {
 public:
  // `place`: of kS3, kGcs without credentials, kAzureBlob or kAzureDataLake; its path counts for
  // nothing. Its region is one to sign for. `proxy`: as http::TransferRequest has it.
  StoreRequests(spec::DataPlace place, Credentials credentials, StoreWords words,
                std::optional<std::string> proxy);

  // An answer of any status is OK, redirects too, which are not followed: they would take the
  // signature to another server. Unavailable: there is no answer, or it broke off.
  // InvalidArgument of what cannot be asked for so, as a path that no address has;
  // FailedPrecondition without libcurl; PermissionDenied where a service principal gets no token.
  // Else returns what a callback returns.
  absl::StatusOr<http::TransferResponse> Send(const ObjectRequest& request);

  const spec::DataPlace& place() const { return place_; }
  StoreWords words() const { return words_; }

 private:
  absl::Status Sign(const ObjectRequest& request, http::TransferRequest& transfer) const;
  absl::Status SignForAzure(const ObjectRequest& request, http::TransferRequest& transfer) const;
  absl::StatusOr<std::string> AuthorizationForAzure(const RequestToSign& to_sign,
                                                    absl::string_view scheme) const;
  http::KeptConnections Take();
  void GiveBack(http::KeptConnections connections);

  spec::DataPlace place_;
  const Credentials credentials_;
  const StoreWords words_;
  const std::optional<std::string> proxy_;
  const std::unique_ptr<BearerToken> token_;  // of a service principal, else null
  absl::Mutex mutex_;
  std::vector<http::KeptConnections> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::storage
