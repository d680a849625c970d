// PageListener serves the portal to this machine's browsers by plain HTTP, since none of them
// trusts the service's own certificate. Whoever takes its port while the service is away has the
// origin of the browser's pages from then on: a worker that was installed there acts in each later
// page. So the origin is never used again: it is a name of its own below localhost, which is drawn
// at each start. Requests for any other name are led to it and have no session.
//
// It listens on 127.0.0.1 and ::1: browsers take either for a name below localhost, and must find
// nobody else at one of them. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "http/server/server.h"
#include "platform/api/routing/router.h"

namespace tutti::api {

// What requests in work get when a server stops.
inline constexpr absl::Duration kGrace = absl::Seconds(1);

struct PageListenerOptions {
  int port = 0;         // 0: any free one
  std::string tls_url;  // of the service itself, for browsers that know no such name; may be empty
  const Router* router = nullptr;  // outlives the listener
  std::function<void(const http::AnsweredRequest&)> on_answered;
};

class PageListener {
 public:
  // Starts to listen. AlreadyExists: the port is taken at one of the addresses. FailedPrecondition:
  // the kernel does not say whose process asks.
  static absl::StatusOr<std::unique_ptr<PageListener>> Start(const PageListenerOptions& options);
  // Requests in work get a second.
  ~PageListener();
  const std::string& url() const { return url_; }  // "http://tutti-0123456789abcdef.localhost:6281"

 private:
  explicit PageListener(const PageListenerOptions& options);
  absl::Status Listen(int port);
  absl::StatusOr<std::unique_ptr<http::Server>> ListenAt(const std::string& address, int port);
  http::Admission Admit(const http::Request& request) const;
  // Answers a request for another name.
  http::Response LeadHere(const http::Request& request) const;

  const PageListenerOptions options_;
  const std::string name_;
  std::unique_ptr<http::Server> v4_, v6_;  // v6_ is null where this machine has no IPv6
  std::string url_;
};

}  // namespace tutti::api
