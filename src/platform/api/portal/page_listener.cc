#include "platform/api/portal/page_listener.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status.h"
#include "http/socket_name.h"
#include "platform/api/portal/peer_user.h"

namespace tutti::api {
namespace {

constexpr char kV4[] = "127.0.0.1", kV6[] = "::1";
constexpr int kMostConnections = 256;  // at each address
constexpr int kMostDraws = 20;         // of a port that is free at both addresses

// "tutti-01.localhost" and ":6281" of the Host header; "" of a port that is none.
std::pair<absl::string_view, absl::string_view> HostOf(const http::Request& request) {
  const absl::string_view host = request.Header("host");
  const size_t colon = host.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(host.substr(colon + 1), &port)) {
    return {host, ""};
  }
  return {host.substr(0, colon), host.substr(colon)};
}

// Safari asks the system for names below localhost, which knows none.
bool IsSafari(const http::Request& request) {
  const absl::string_view agent = request.Header("user-agent");
  return absl::StrContains(agent, "AppleWebKit/") && !absl::StrContains(agent, "Chrome/");
}

}  // namespace

PageListener::PageListener(const PageListenerOptions& options)
    : options_(options), name_(absl::StrCat("tutti-", base::RandomHex(8), ".localhost")) {}

PageListener::~PageListener() {
  if (v6_ != nullptr) v6_->Stop(kGrace);
  if (v4_ != nullptr) v4_->Stop(kGrace);
}

absl::StatusOr<std::unique_ptr<PageListener>> PageListener::Start(
    const PageListenerOptions& options) {
  TUTTI_RETURN_IF_ERROR(CheckPeersAreKnown());
  auto listener = std::unique_ptr<PageListener>(new PageListener(options));
  absl::Status status;
  for (int draw = 0; draw < (options.port == 0 ? kMostDraws : 1); ++draw) {
    status = listener->Listen(options.port);
    if (!absl::IsAlreadyExists(status)) break;
  }
  TUTTI_RETURN_IF_ERROR(status);
  return listener;
}

absl::Status PageListener::Listen(int port) {
  TUTTI_ASSIGN_OR_RETURN(v4_, ListenAt(kV4, port));
  if (http::IsOfThisMachine(kV6)) {
    TUTTI_ASSIGN_OR_RETURN(v6_, ListenAt(kV6, v4_->port()));
  }
  url_ = absl::StrCat("http://", name_, ":", v4_->port());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<http::Server>> PageListener::ListenAt(const std::string& address,
                                                                     int port) {
  http::ServerOptions listen{.address = address,
                             .port = port,
                             .port_option = "--portal-port",
                             .max_connections = kMostConnections};
  listen.admit = [this](const http::Request& request) { return Admit(request); };
  listen.on_answered = options_.on_answered;
  return http::Server::Start(
      listen, [router = options_.router](const http::Request& request, http::Connection& at) {
        return router->Answer(request, at);
      });
}

// A browser behind ssh -L may have another port, but has the name.
http::Admission PageListener::Admit(const http::Request& request) const {
  if (absl::EqualsIgnoreCase(HostOf(request).first, name_)) return options_.router->Admit(request);
  return {.refusal = LeadHere(request)};
}

http::Response PageListener::LeadHere(const http::Request& request) const {
  const bool is_page = request.path == "/" || absl::StartsWith(request.path, "/portal");
  if (!is_page || (request.method != "GET" && request.method != "HEAD")) {
    return http::ErrorResponse(
        421, "other_name",
        absl::StrCat("The service has started anew, which signs pages out: it is at ", url_,
                     " now. tutti portal opens it."));
  }
  std::string origin = absl::StrCat("http://", name_, HostOf(request).second);
  if (IsSafari(request) && !options_.tls_url.empty()) origin = options_.tls_url;
  return {.status = 302,
          .content_type = "text/plain",
          .headers = {{"Location", absl::StrCat(origin, request.target)},
                      {"Cache-Control", "no-store"}}};
}

}  // namespace tutti::api
