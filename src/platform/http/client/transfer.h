// Makes one request by libcurl to a server that is not tutti's: libcurl knows proxies (http_proxy,
// https_proxy, no_proxy) and HTTP/2, and tries all addresses of a host. Redirects are the caller's.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "platform/http/client/client.h"

namespace tutti::http {

struct TransferRequest {
  std::string method = "GET";  // or HEAD, PUT, POST, DELETE
  std::string url;             // http:// or https://
  std::vector<std::pair<std::string, std::string>> headers;
  absl::string_view
      body;  // of PUT, which has one, be it empty; its type is not told; of POST a form
  base::Deadline deadline;                   // of the whole
  absl::Duration stall = absl::Seconds(60);  // without a byte: the connection counts as cut
  // HTTP/1.1 in any case: a connection a transfer, which takes less of a processor a byte.
  bool only_http1 = false;
  size_t piece_bytes = 16 << 10;  // that on_chunk gets at most
  // "" for none; nothing: as http_proxy, https_proxy, all_proxy and no_proxy say.
  std::optional<std::string> proxy;
  // As in ClientRequest: of a 2xx answer. Called by the thread that calls Transfer.
  std::function<absl::Status(const ClientResponse& header)> on_header;
  ChunkCallback on_chunk;
};

struct TransferResponse : ClientResponse {
  std::string redirect;  // the whole address that a 3xx answer leads to; "": to none
};

// Keeps connections open for later transfers to the same server. One transfer at a time.
class KeptConnections {
 public:
  KeptConnections();
  ~KeptConnections();
  KeptConnections(KeptConnections&&) noexcept;
  KeptConnections& operator=(KeptConnections&&) noexcept;

 private:
  friend absl::StatusOr<TransferResponse> Transfer(const TransferRequest& request,
                                                   const std::atomic<bool>& cancelled,
                                                   KeptConnections* kept);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// An answer of any status is OK; of one that is no 2xx the body is cut off after 64 KiB.
// Unavailable: no connection, or it broke. DeadlineExceeded; InvalidArgument of an address that is
// none; Cancelled once `cancelled` is set, which is looked at 20 times a second whatever the
// transfer waits for; FailedPrecondition without a libcurl. What a callback returns, else.
// Thread-safe.
absl::StatusOr<TransferResponse> Transfer(const TransferRequest& request,
                                          const std::atomic<bool>& cancelled,
                                          KeptConnections* kept = nullptr);

}  // namespace tutti::http
