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
#include "http/client/client.h"

namespace tutti::http {

struct TransferRequest {
  std::string method = "GET";  // or HEAD, PUT, POST, DELETE
  std::string url;             // http:// or https://
  std::vector<std::pair<std::string, std::string>> headers;
  // PUT always has a body, if an empty one, and names no type of it; the body of POST is a form.
  absl::string_view body;
  base::Deadline deadline;                   // limits the whole
  absl::Duration stall = absl::Seconds(60);  // without a byte the connection counts as cut
  // Keeps to HTTP/1.1, with a connection for each transfer, which takes less processor time a byte.
  bool only_http1 = false;
  size_t piece_bytes = 16 << 10;  // is the most that on_chunk gets at once
  // Names the proxy, "" for none; if not set, http_proxy, https_proxy, all_proxy and no_proxy do.
  std::optional<std::string> proxy;
  // Both see a 2xx answer, as in ClientRequest, in the thread that calls Transfer.
  std::function<absl::Status(const ClientResponse& header)> on_header;
  ChunkCallback on_chunk;
};

struct TransferResponse : ClientResponse {
  std::string redirect;  // the whole address to which a 3xx answer leads; else ""
};

// KeptConnections keeps connections open for later transfers to the same server. One transfer at a
// time may use it.
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

// Makes the request. An answer of any status is OK; the body of one that is no 2xx is cut off after
// 64 KiB. Unavailable if there is no connection or it broke; DeadlineExceeded; InvalidArgument for
// an invalid address; Cancelled once `cancelled` is set, which is checked 20 times a second
// whatever the transfer waits for; FailedPrecondition without libcurl; else what a callback
// returns. Thread-safe.
absl::StatusOr<TransferResponse> Transfer(const TransferRequest& request,
                                          const std::atomic<bool>& cancelled,
                                          KeptConnections* kept = nullptr);

}  // namespace tutti::http
