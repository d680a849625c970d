#include "platform/api/portal/portal_routes.h"

#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "spec/json/json_fields.h"
#include "spec/views/view_writer.h"

namespace tutti::api {
namespace {

namespace fs = std::filesystem;
using http::ErrorResponse;
using http::JsonResponse;
using http::Response;

// No script or style but the portal's own files, no other server, no frame around it. Mantine puts
// style elements into the page; an attacker who could do that could do no more than look ugly.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' blob: "
    "data:; font-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'";

constexpr char kNotThere[] =
    "<!doctype html><meta charset=utf-8><title>tutti</title><p>This service has no page: its files "
    "are not beside its program. Build them with <code>tools/build-portal</code> (Node.js comes "
    "from "
    "PyPI where the machine has none) and load this page again; the service itself needs none.";

absl::string_view MediaTypeOf(absl::string_view path) {
  static constexpr std::pair<absl::string_view, absl::string_view> kTypes[] = {
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".svg", "image/svg+xml"},
      {".png", "image/png"},
      {".woff2", "font/woff2"}};
  for (const auto& [ending, type] : kTypes) {
    if (absl::EndsWith(path, ending)) return type;
  }
  return "application/octet-stream";
}

// Returns the file that a request's path names: the document, unless it is the icon or an asset; ""
// if it can be none. The path is a stranger's, so that nothing else of it reaches the disk.
std::string FileNamed(absl::string_view path) {
  constexpr absl::string_view kAssets = "assets/";
  if (path == "icon.svg") return std::string(path);
  if (!absl::StartsWith(path, kAssets)) return "index.html";
  const absl::string_view name = path.substr(kAssets.size());
  const bool is_plain = !name.empty() && name[0] != '.' && absl::c_all_of(name, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
  });
  return is_plain ? std::string(path) : "";
}

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// A view of the page has an address of its own, which names no file.
Response PortalFile(const Portal& portal, const Call& call) {
  if (portal.words == nullptr) {
    return ErrorResponse(404, "not_found", "this service has no portal (tutti serve --no-portal)");
  }
  const fs::path& folder = portal.folder;
  const std::string path = FileNamed(call["path"]);
  if (path.empty() || (path != "index.html" && !IsFile(folder / path))) {
    return ErrorResponse(404, "not_found", absl::StrCat("the portal has no ", call["path"]));
  }
  Response response{.content_type = std::string(MediaTypeOf(path)),
                    .headers = {{"Content-Security-Policy", kPolicy},
                                {"X-Content-Type-Options", "nosniff"},
                                {"Referrer-Policy", "no-referrer"},
                                {"Cross-Origin-Opener-Policy", "same-origin"},
                                {"Cross-Origin-Resource-Policy", "same-origin"},
                                {"Vary", "Accept-Encoding"}}};
  // The names of assets have a hash of their content.
  response.headers.emplace_back("Cache-Control", absl::StartsWith(path, "assets/")
                                                     ? "max-age=31536000, immutable"
                                                     : "no-cache");
  response.file = folder / path;
  const fs::path packed = folder / absl::StrCat(path, ".gz");
  if (absl::StrContains(call.request.Header("accept-encoding"), "gzip") && IsFile(packed)) {
    response.headers.emplace_back("Content-Encoding", "gzip");
    response.file = packed;
  }
  if (IsFile(response.file)) return response;
  response.status = 503;
  response.content_type = "text/html; charset=utf-8";
  response.file.clear();
  response.body = kNotThere;
  return response;
}

// A link for browsers of other machines is at the address that its maker uses: who asks from there
// wants one, or says so.
Response MakeLink(const Portal& portal, const Call& call) {
  if (portal.words == nullptr) {
    return ErrorResponse(absl::FailedPreconditionError(
        "this service has no portal: it was started with --no-portal"));
  }
  const auto user = UserOfPeer(call.request);
  if (!user.ok()) return ErrorResponse(user.status());
  const bool elsewhere = !*user || call.request.Query("elsewhere") == "true";
  const auto origin = portal.url();
  if (!origin.ok() && !elsewhere) return ErrorResponse(origin.status());
  const std::string word = portal.words->Make(*user, elsewhere);
  const absl::Time expires = absl::Now() + PortalWords::kLast;
  nlohmann::json link{{"word", word},
                      {"elsewhere", elsewhere},
                      {"there", IsFile(portal.folder / "index.html")},
                      {"expires", spec::Rfc3339(expires)},
                      {"url", nullptr}};
  if (origin.ok()) link["url"] = absl::StrCat(*origin, "/portal/#sign-in=", word);
  return JsonResponse(spec::Dump(link), 201);
}

// The word comes as a header: no log of requests has it, and who has shown no token may send no
// body.
absl::StatusOr<std::string> WordOf(const Portal& portal, const Call& call) {
  const absl::string_view word = call.request.Header("x-tutti-word");
  if (word.empty()) {
    return absl::InvalidArgumentError(
        "the header X-Tutti-Word must have what the link has behind sign-in=");
  }
  if (portal.words == nullptr) return absl::UnauthenticatedError("this service has no portal");
  return std::string(word);
}

Response GetLink(const Portal& portal, const Call& call) {
  const auto word = WordOf(portal, call);
  if (!word.ok()) return ErrorResponse(word.status());
  return JsonResponse(spec::Dump({{"unused", portal.words->IsUnused(*word)}}));
}

absl::StatusOr<PortalSessions::Session> SignIn(const Portal& portal, const Call& call) {
  TUTTI_ASSIGN_OR_RETURN(const std::string word, WordOf(portal, call));
  if (!portal.is_page_listener && absl::StartsWith(call.request.Header("origin"), "http://")) {
    const auto url = portal.url();
    return absl::UnauthenticatedError(
        url.ok() ? absl::StrCat("by plain HTTP pages sign in at ", *url, "/portal/ alone")
                 : std::string(url.status().message()));
  }
  TUTTI_ASSIGN_OR_RETURN(const PeerUser user, UserOfPeer(call.request));
  TUTTI_RETURN_IF_ERROR(portal.words->Use(word, user, !portal.is_page_listener));
  return portal.sessions->Open(call.request, user);
}

Response OpenSession(const Portal& portal, const Call& call) {
  const auto session = SignIn(portal, call);
  if (!session.ok()) return ErrorResponse(session.status());
  Response response = JsonResponse(spec::Dump(
      {{"write_token", session->write_token}, {"expires", spec::Rfc3339(session->expires)}}));
  response.headers.emplace_back("Set-Cookie", session->cookie);
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

absl::Status EndSessions(const Portal& portal, const Call& call) {
  if (portal.words == nullptr) return absl::OkStatus();
  if (call.request.Query("everywhere") != "true") return portal.sessions->End(call.request);
  portal.words->Clear();
  absl::Status status;
  for (PortalSessions* const sessions : portal.all_sessions) status.Update(sessions->EndAll());
  return status;
}

Response CloseSession(const Portal& portal, const Call& call) {
  if (const absl::Status status = EndSessions(portal, call); !status.ok()) {
    return ErrorResponse(status);
  }
  Response response = JsonResponse("{}");
  if (portal.words != nullptr) {
    response.headers.emplace_back("Set-Cookie", portal.sessions->Closing(call.request));
  }
  return response;
}

Response Root(const Call&) {
  return {.status = 302, .content_type = "text/plain", .headers = {{"Location", "/portal/"}}};
}

}  // namespace

std::vector<Route> PortalRoutes(const Portal* portal) {
  const auto with = [portal](Response (*answer)(const Portal&, const Call&)) {
    return [portal, answer](const Call& call) { return answer(*portal, call); };
  };
  return {
      {"GET", "/", Access::kAnyone, Root},
      {"GET", "/portal", Access::kAnyone, Root},
      {"GET", "/portal/{path...}", Access::kAnyone, with(PortalFile)},
      {"POST", "/v1/portal-links", Access::kToken, with(MakeLink)},
      {"GET", "/v1/portal-links", Access::kToken, with(GetLink)},
      {"POST", "/v1/portal-sessions", Access::kAnyone, with(OpenSession)},
      {"DELETE", "/v1/portal-sessions", Access::kUser, with(CloseSession), http::Pace::kSlow},
  };
}

}  // namespace tutti::api
