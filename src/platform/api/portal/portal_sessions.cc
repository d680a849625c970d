#include "platform/api/portal/portal_sessions.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "spdlog/spdlog.h"

namespace tutti::api {
namespace {

constexpr size_t kMostWords = 1000;
constexpr size_t kWordBytes = 16, kIdBytes = 8, kEraBytes = 16;

// What a browser says of the page that asks. Programs that are no browser say neither.
// Before a proxy of the site the scheme may be another, but not the host and its port.
bool IsOfOurOrigin(const http::Request& request) {
  const absl::string_view origin = request.Header("origin"), host = request.Header("host");
  if (!origin.empty() && origin != absl::StrCat("http://", host) &&
      origin != absl::StrCat("https://", host)) {
    return false;
  }
  const absl::string_view site = request.Header("sec-fetch-site");
  const bool reads = request.method == "GET" || request.method == "HEAD";
  // A user who opens a file's address in a tab of its own comes from no page.
  return site.empty() || site == "same-origin" || (site == "none" && reads);
}

absl::string_view CookieOf(const http::Request& request, absl::string_view name) {
  for (absl::string_view one : absl::StrSplit(request.Header("cookie"), ';')) {
    one = absl::StripAsciiWhitespace(one);
    const size_t equals = one.find('=');
    if (equals != absl::string_view::npos && one.substr(0, equals) == name) {
      return one.substr(equals + 1);
    }
  }
  return "";
}

// The user of this machine, and the host name by which the browser knows it.
std::string WhoAsks(const http::Request& request, PeerUser user) {
  return absl::StrCat(user ? absl::StrCat(*user) : "-", " ", request.Header("host"));
}

}  // namespace

std::string PortalWords::Make(PeerUser asked_by, bool for_elsewhere) {
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  std::erase_if(words_, [&](const auto& word) { return word.second.until < now; });
  // Who asks for more than this many links uses none of them: the one that ends first goes.
  while (words_.size() >= kMostWords) {
    words_.erase(std::min_element(words_.begin(), words_.end(), [](const auto& a, const auto& b) {
      return a.second.until < b.second.until;
    }));
  }
  std::string word = base::RandomHex(kWordBytes);
  words_[word] = {now + kLast, asked_by.value_or(own_user_), for_elsewhere};
  return word;
}

absl::Status PortalWords::Use(absl::string_view word, PeerUser user, bool by_tls) {
  absl::MutexLock lock(&mutex_);
  const auto found = words_.find(word);
  if (found == words_.end() || found->second.until < clock_->Now()) {
    return absl::UnauthenticatedError(
        "this link was used already, or is too old: tutti portal makes another");
  }
  const Word& made = found->second;
  if (!(made.for_elsewhere && by_tls) && user != made.user) {
    return absl::UnauthenticatedError(
        user ? "this link is for another user of the machine: tutti portal makes one for who calls "
               "it"
             : "this link is for browsers of the service's machine: on yours, tutti portal makes "
               "another");
  }
  words_.erase(found);
  return absl::OkStatus();
}

void PortalWords::Clear() {
  absl::MutexLock lock(&mutex_);
  words_.clear();
}

bool PortalWords::IsUnused(absl::string_view word) const {
  absl::MutexLock lock(&mutex_);
  const auto found = words_.find(word);
  return found != words_.end() && found->second.until >= clock_->Now();
}

PortalSessions::PortalSessions(std::string key, std::filesystem::path file,
                               const base::Clock* clock)
    : key_(std::move(key)),
      file_(std::move(file)),
      clock_(clock),
      cookie_name_(absl::StrCat("tutti_session_",
                                base::Hex(base::HmacSha256(key_, "portal name")).substr(0, 8))) {
  Kept kept = ReadKept();
  if (kept.era.empty()) kept = {.era = base::RandomHex(kEraBytes)};
  absl::MutexLock one_by_one(&changing_);
  if (const absl::Status status = Change(std::move(kept)); !status.ok()) {
    spdlog::warn("no session of the portal outlives this service: {}", status.ToString());
    absl::MutexLock lock(&mutex_);
    era_ = base::RandomHex(kEraBytes);
  }
}

PortalSessions::Kept PortalSessions::ReadKept() const {
  const auto text = file_.empty() ? std::string() : base::ReadFile(file_).value_or("");
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("era") || !json["era"].is_string()) return {};
  Kept kept{.era = json["era"]};
  const auto ended = json.value("ended", nlohmann::json::object());
  for (const auto& [id, until] : ended.items()) {
    if (until.is_number_integer()) kept.ended[id] = until.get<int64_t>();
  }
  return kept;
}

// The parts that a user's browser chooses have no space.
std::string PortalSessions::Code(absl::string_view what, const Named& session,
                                 absl::string_view who) const {
  return base::Hex(base::HmacSha256(key_, absl::StrCat("portal ", what, " ", era_, " ",
                                                       session.until, " ", session.id, " ", who)));
}

std::string PortalSessions::Cookie(absl::string_view value, absl::Duration lasts,
                                   const http::Request& request) const {
  const bool secure = absl::StartsWith(request.Header("origin"), "https://");
  return absl::StrCat(cookie_name_, "=", value, "; Path=/v1/; HttpOnly; SameSite=Strict; Max-Age=",
                      absl::ToInt64Seconds(lasts), secure ? "; Secure" : "");
}

std::string PortalSessions::Closing(const http::Request& request) const {
  return Cookie("", absl::ZeroDuration(), request);
}

absl::StatusOr<PortalSessions::Session> PortalSessions::Open(const http::Request& request,
                                                             PeerUser user) {
  if (!IsOfOurOrigin(request)) {
    return absl::UnauthenticatedError("a page of another origin may open no session");
  }
  const absl::Time expires = clock_->Now() + kLast;
  const Named session{.until = absl::StrCat(absl::ToUnixSeconds(expires)),
                      .id = base::RandomHex(kIdBytes)};
  const std::string who = WhoAsks(request, user);
  absl::MutexLock lock(&mutex_);
  const std::string code = Code("session", session, who);
  return Session{
      .cookie = Cookie(absl::StrCat(session.until, ".", session.id, ".", code), kLast, request),
      .write_token = Code("write", session, who),
      .expires = expires};
}

PortalSessions::Named PortalSessions::NamedBy(const http::Request& request) const {
  const std::vector<std::string> parts = absl::StrSplit(CookieOf(request, cookie_name_), '.');
  int64_t until = 0;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &until)) return {};
  return {parts[0], parts[1], parts[2], absl::FromUnixSeconds(until)};
}

bool PortalSessions::Admits(const http::Request& request, PeerUser user) const {
  const Named session = NamedBy(request);
  if (session.id.empty() || session.expires < clock_->Now() || !IsOfOurOrigin(request)) {
    return false;
  }
  const std::string who = WhoAsks(request, user);
  absl::MutexLock lock(&mutex_);
  if (!base::EqualInConstantTime(session.code, Code("session", session, who)) ||
      ended_.contains(session.id)) {
    return false;
  }
  if (request.method == "GET" || request.method == "HEAD") return true;
  return base::EqualInConstantTime(request.Header("x-tutti-portal"), Code("write", session, who));
}

// A folder that hangs keeps who signs out waiting, and no other request.
absl::Status PortalSessions::End(const http::Request& request) {
  const Named session = NamedBy(request);
  if (session.id.empty()) return absl::OkStatus();
  const absl::Time now = clock_->Now();
  absl::MutexLock one_by_one(&changing_);
  Kept next;
  {
    absl::MutexLock lock(&mutex_);
    next = {era_, ended_};
  }
  std::erase_if(next.ended,
                [&](const auto& one) { return absl::FromUnixSeconds(one.second) < now; });
  next.ended[session.id] = absl::ToUnixSeconds(session.expires);
  return Change(std::move(next));
}

absl::Status PortalSessions::EndAll() {
  absl::MutexLock one_by_one(&changing_);
  return Change({.era = base::RandomHex(kEraBytes)});
}

absl::Status PortalSessions::Change(Kept next) {
  if (!file_.empty()) {
    const auto text = nlohmann::json{{"era", next.era}, {"ended", next.ended}}.dump();
    TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(file_, text, 0600));
  }
  absl::MutexLock lock(&mutex_);
  era_ = std::move(next.era);
  ended_ = std::move(next.ended);
  return absl::OkStatus();
}

}  // namespace tutti::api
