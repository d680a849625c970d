#include "platform/api/portal/portal_sessions.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/hash.h"
#include "base/unique_fd.h"

namespace tutti::api {
namespace {

constexpr size_t kMostWords = 1000;
constexpr size_t kWordBytes = 16;

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
std::string WhoAsks(const http::Request& request, PortalSessions::User user) {
  return absl::StrCat(user ? absl::StrCat(*user) : "-", " ", request.Header("host"));
}

}  // namespace

PortalSessions::PortalSessions(std::string key, const base::Clock* clock)
    : key_(std::move(key)),
      clock_(clock),
      cookie_name_(absl::StrCat("tutti_session_", Code("name", "", "").substr(0, 8))) {}

std::string PortalSessions::Code(absl::string_view what, absl::string_view expires,
                                 absl::string_view who) const {
  return base::Hex(base::HmacSha256(key_, absl::StrCat("portal ", what, " ", expires, " ", who)));
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

std::string PortalSessions::MakeWord() {
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  std::erase_if(words_, [&](const auto& word) { return word.second < now; });
  // Who asks for more than this many links uses none of them: the one that ends first goes.
  while (words_.size() >= kMostWords) {
    words_.erase(std::min_element(words_.begin(), words_.end(), [](const auto& a, const auto& b) {
      return a.second < b.second;
    }));
  }
  std::string word = base::RandomHex(kWordBytes);
  words_[word] = now + kWordLasts;
  return word;
}

absl::StatusOr<PortalSessions::Session> PortalSessions::Open(absl::string_view word,
                                                             const http::Request& request,
                                                             User user) {
  const absl::Time now = clock_->Now();
  if (!IsOfOurOrigin(request)) {
    return absl::UnauthenticatedError("a page of another origin may open no session");
  }
  {
    absl::MutexLock lock(&mutex_);
    const auto found = words_.find(std::string(word));
    if (found == words_.end() || found->second < now) {
      return absl::UnauthenticatedError(
          "this link was used already, or is too old: tutti portal makes another");
    }
    words_.erase(found);
  }
  const absl::Time expires = now + kSessionLasts;
  const std::string until = absl::StrCat(absl::ToUnixSeconds(expires));
  const std::string who = WhoAsks(request, user);
  return Session{.cookie = Cookie(absl::StrCat(until, ".", Code("session", until, who)),
                                  kSessionLasts, request),
                 .write_token = Code("write", until, who),
                 .expires = expires};
}

bool PortalSessions::Admits(const http::Request& request, User user) const {
  const absl::string_view cookie = CookieOf(request, cookie_name_);
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(cookie, absl::MaxSplits('.', 1));
  int64_t until = 0;
  if (!absl::SimpleAtoi(parts.first, &until) || absl::FromUnixSeconds(until) < clock_->Now() ||
      !IsOfOurOrigin(request)) {
    return false;
  }
  const std::string who = WhoAsks(request, user);
  if (!base::EqualInConstantTime(parts.second, Code("session", parts.first, who))) return false;
  if (request.method == "GET" || request.method == "HEAD") return true;
  return base::EqualInConstantTime(request.Header("x-tutti-portal"),
                                   Code("write", parts.first, who));
}

std::optional<uint32_t> UserOfLocalPeer(absl::string_view peer, absl::string_view address,
                                        int port) {
  const std::pair<std::string, std::string> ends = absl::StrSplit(peer, absl::MaxSplits(':', 1));
  int peer_port = 0;
  struct {
    nlmsghdr header = {};
    inet_diag_req_v2 question = {};
  } ask;
  inet_diag_sockid& id = ask.question.id;
  // Of IPv4 alone: of another nothing is known.
  if (!absl::SimpleAtoi(ends.second, &peer_port) ||
      ::inet_pton(AF_INET, ends.first.c_str(), id.idiag_src) != 1 ||
      ::inet_pton(AF_INET, std::string(address).c_str(), id.idiag_dst) != 1) {
    return std::nullopt;
  }
  id.idiag_sport = htons(static_cast<uint16_t>(peer_port));
  id.idiag_dport = htons(static_cast<uint16_t>(port));
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  ask.header.nlmsg_len = sizeof ask;
  ask.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  ask.header.nlmsg_flags = NLM_F_REQUEST;
  ask.question.sdiag_family = AF_INET;
  ask.question.sdiag_protocol = IPPROTO_TCP;
  ask.question.idiag_states = ~0u;
  const base::UniqueFd socket(
      ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
  if (socket.get() < 0 || ::send(socket.get(), &ask, sizeof ask, 0) != sizeof ask) {
    return std::nullopt;
  }
  // The kernel has answered by the time at which send returns.
  alignas(nlmsghdr) char answer[4096];
  const ssize_t size = ::recv(socket.get(), answer, sizeof answer, 0);
  if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(inet_diag_msg)))) return std::nullopt;
  nlmsghdr header;
  std::memcpy(&header, answer, sizeof header);
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  inet_diag_msg found;
  std::memcpy(&found, answer + NLMSG_HDRLEN, sizeof found);
  // A request for a socket that is gone may be answered by one that listens there.
  if (found.id.idiag_dport != id.idiag_dport || found.id.idiag_sport != id.idiag_sport) {
    return std::nullopt;
  }
  return found.idiag_uid;
}

}  // namespace tutti::api
