// Makes one request by libcurl to a server that is not tutti's: libcurl knows proxies (http_proxy,
// https_proxy, no_proxy) and HTTP/2, and tries all addresses of a host. Redirects are the caller's.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "platform/http/client/client.h"

namespace tutti::http {

struct TransferRequest {
  bool head = false;  // by HEAD, else by GET
  std::string url;    // http:// or https://
  std::vector<std::pair<std::string, std::string>> headers;
  base::Deadline deadline;                   // of the whole
  absl::Duration stall = absl::Seconds(60);  // without a byte: the connection counts as cut
  // As in ClientRequest: of a 2xx answer. Called by the thread that calls Transfer.
  std::function<absl::Status(const ClientResponse& header)> on_header;
  ChunkCallback on_chunk;
};

struct TransferResponse : ClientResponse {
  std::string redirect;  // the whole address that a 3xx answer leads to; "": to none
};

// An answer of any status is OK; of one that is no 2xx the body is cut off after 64 KiB.
// Unavailable: no connection, or it broke. DeadlineExceeded; InvalidArgument of an address that is
// none; Cancelled once `cancelled` is set, which is looked at 20 times a second whatever the
// transfer waits for; FailedPrecondition without a libcurl. What a callback returns, else.
// Thread-safe.
absl::StatusOr<TransferResponse> Transfer(const TransferRequest& request,
                                          const std::atomic<bool>& cancelled);

}  // namespace tutti::http
