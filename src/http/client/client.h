// Client is a blocking HTTP/1.1 client for one server, by TLS where its address begins with https:
// it keeps its connection, adds the bearer token, and ends every exchange by a deadline.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
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

namespace tutti::http {

using ChunkCallback = std::function<absl::Status(absl::string_view)>;

struct ClientResponse;

struct ClientRequest {
  std::string method = "GET";
  std::string target;  // "/v1/jobs?limit=5"; see PercentEncode
  std::vector<std::pair<std::string, std::string>> headers;
  std::string content_type = "application/json";  // of the body, if there is one
  std::string body;
  std::filesystem::path body_file;  // when not empty, its bytes are the body
  // Limits the whole exchange. Followers that run for hours set `stall_timeout` instead.
  absl::Duration timeout = absl::Seconds(30);
  // Limits the whole exchange in any case, also where bodies may take as long as they need.
  std::optional<base::Deadline> deadline;
  // If finite, as large bodies and followers need it, the bodies may take any time, and the
  // exchange fails only when no byte has moved for this long; `timeout` then limits connecting and
  // the wait for the answer's header.
  absl::Duration stall_timeout = absl::InfiniteDuration();
  // When set, called once there is a connection, before anything of the request is sent: after an
  // error without it the server has seen nothing of it.
  std::function<void()> on_connected;
  // When set, it sees a 2xx answer before its body; an error ends the exchange and is returned.
  std::function<absl::Status(const ClientResponse& header)> on_header;
  // When set, the body of a 2xx answer goes here piece by piece, as it comes; an error ends the
  // exchange and is returned. Other answers' bodies are in ClientResponse::body.
  ChunkCallback on_chunk;
};

struct ClientResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  bool ok() const { return status >= 200 && status < 300; }
};

// Returns the error that a non-2xx answer stands for, with the service's own message; OK for 2xx.
// 410 is Aborted.
absl::Status ToStatus(const ClientResponse& response);

// Splits chunks into lines for on_chunk: `on_line` gets each without its newline. A last line
// without one is dropped, since its end may have been lost.
ChunkCallback ByLine(ChunkCallback on_line);

// Runs one exchange at a time; only Cancel may be called by another thread.
class Client {
 public:
  // Makes a client of the service, whose errors say how to start it. `base_url`:
  // "http://127.0.0.1:6280", "https://host" or "127.0.0.1:6280". `certificate`: PEM, the only one
  // that a service by https may show; empty: one for its name, by an issuer that this machine
  // trusts.
  Client(std::string base_url, std::string token, std::string certificate = "");
  // Makes a client of any server. The body of an answer that is no 2xx is cut off after 64 KiB.
  explicit Client(std::string base_url);
  ~Client();

  // Sends the request and waits for the answer, which is OK here whatever its status (see
  // ToStatus). Unavailable if there is no connection or it broke; one that was kept from an earlier
  // exchange is made anew first, unless the request may already have been acted on.
  // DeadlineExceeded; Cancelled.
  absl::StatusOr<ClientResponse> Send(const ClientRequest& request);

  // Writes the body of a 2xx answer into a file, under a temporary name until it is whole. Another
  // answer is returned as ToStatus says.
  absl::Status Download(const std::string& target, const std::filesystem::path& file);

  // Ends the exchange that is under way, and all later ones, with Cancelled.
  void Cancel();

  const std::string& base_url() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti::http
