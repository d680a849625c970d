#include "platform/api/portal/portal_sessions.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"

namespace tutti::api {
namespace {

using ::testing::HasSubstr;

constexpr char kKey[] = "of-the-service-0123456789";
constexpr char kHost[] = "127.0.0.1:6281";

class PortalSessionsTest : public ::testing::Test {
 protected:
  // What a page of `origin` sends, from a process of the user.
  static http::Request FromPage(const std::string& method, uint32_t user = 1000) {
    return {.method = method,
            .path = "/v1/jobs",
            .headers = {{"host", kHost},
                        {"origin", absl::StrCat("http://", kHost)},
                        {"sec-fetch-site", "same-origin"}},
            .peer = absl::StrCat("127.0.0.1:", user)};
  }
  http::Request SignedIn(const std::string& method, uint32_t user = 1000) {
    const auto session = sessions_.Open(sessions_.MakeWord(), FromPage("POST", user));
    EXPECT_TRUE(session.ok()) << session.status();
    http::Request request = FromPage(method, user);
    request.headers["cookie"] =
        absl::StrCat("other=1; ", session->cookie.substr(0, session->cookie.find(';')), "; last=2");
    request.headers["x-tutti-portal"] = session->write_token;
    return request;
  }
  static std::optional<uint32_t> UserByPort(absl::string_view peer) {
    if (!absl::StartsWith(peer, "127.")) return std::nullopt;
    return static_cast<uint32_t>(std::stoul(std::string(peer.substr(peer.find(':') + 1))));
  }

  base::ManualClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  PortalSessions sessions_{kKey, &clock_, UserByPort};
};

TEST_F(PortalSessionsTest, AWordOpensOneSessionWithinItsTime) {
  const std::string word = sessions_.MakeWord(), late = sessions_.MakeWord();
  EXPECT_TRUE(sessions_.Open(word, FromPage("POST")).ok());
  EXPECT_THAT(sessions_.Open(word, FromPage("POST")).status().message(),
              HasSubstr("tutti portal makes another"));
  EXPECT_FALSE(sessions_.Open("", FromPage("POST")).ok());
  EXPECT_FALSE(sessions_.Open(std::string(32, '0'), FromPage("POST")).ok());
  clock_.Advance(PortalSessions::kWordLasts + absl::Seconds(1));
  EXPECT_FALSE(sessions_.Open(late, FromPage("POST")).ok());
}

TEST_F(PortalSessionsTest, TheCookieIsForNoScriptAndNoOtherSite) {
  const auto session = sessions_.Open(sessions_.MakeWord(), FromPage("POST"));
  ASSERT_TRUE(session.ok()) << session.status();
  for (const char* word : {"; HttpOnly", "; SameSite=Strict", "; Path=/v1/", "; Max-Age=604800"}) {
    EXPECT_THAT(session->cookie, HasSubstr(word));
  }
  EXPECT_FALSE(absl::StrContains(session->cookie, "Secure"));
  EXPECT_FALSE(absl::StrContains(session->cookie, session->write_token));
  http::Request proxied = FromPage("POST");
  proxied.headers["host"] = "tutti.example";
  proxied.headers["origin"] = "https://tutti.example";
  const auto behind = sessions_.Open(sessions_.MakeWord(), proxied);
  ASSERT_TRUE(behind.ok()) << behind.status();
  EXPECT_THAT(behind->cookie, HasSubstr("; Secure"));
}

TEST_F(PortalSessionsTest, APageReadsByTheCookieAndChangesWithTheTokenToo) {
  EXPECT_TRUE(sessions_.Admits(SignedIn("GET")));
  EXPECT_TRUE(sessions_.Admits(SignedIn("POST")));
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH"}) {
    http::Request without = SignedIn(method);
    without.headers.erase("x-tutti-portal");
    EXPECT_FALSE(sessions_.Admits(without)) << method << " with the cookie alone";
  }
  http::Request reading = SignedIn("GET");
  reading.headers.erase("x-tutti-portal");
  EXPECT_TRUE(sessions_.Admits(reading));
  reading.headers.erase("cookie");
  EXPECT_FALSE(sessions_.Admits(reading));
}

TEST_F(PortalSessionsTest, ARequestOfAnotherOriginOpensNothing) {
  for (const char* origin : {"http://evil.example", "null", "http://127.0.0.1:8888",
                             "http://127.0.0.1:6281.evil.example", "http://localhost:6281"}) {
    http::Request request = SignedIn("POST");
    request.headers["origin"] = origin;
    EXPECT_FALSE(sessions_.Admits(request)) << origin;
    request.method = "GET";
    EXPECT_FALSE(sessions_.Admits(request)) << origin;
    request = FromPage("POST");
    request.headers["origin"] = origin;
    EXPECT_FALSE(sessions_.Open(sessions_.MakeWord(), request).ok()) << origin;
  }
  for (const char* site : {"cross-site", "same-site"}) {
    http::Request request = SignedIn("GET");
    request.headers.erase("origin");
    request.headers["sec-fetch-site"] = site;
    EXPECT_FALSE(sessions_.Admits(request)) << site;
  }
  http::Request typed = SignedIn("GET");
  typed.headers.erase("origin");
  typed.headers["sec-fetch-site"] = "none";
  EXPECT_TRUE(sessions_.Admits(typed)) << "a file's address in a tab of its own";
}

// A name of an attacker that was made to lead to loopback (DNS rebinding).
TEST_F(PortalSessionsTest, ASessionIsOfOneHostName) {
  http::Request request = SignedIn("GET");
  request.headers["host"] = "rebound.evil.example:6281";
  request.headers["origin"] = "http://rebound.evil.example:6281";
  EXPECT_FALSE(sessions_.Admits(request));
}

// Cookies go to every port of a host, also to that of another user's program.
TEST_F(PortalSessionsTest, ASessionIsOfOneUserOfTheMachine) {
  http::Request request = SignedIn("GET", 1000);
  EXPECT_TRUE(sessions_.Admits(request));
  request.peer = "127.0.0.1:1001";
  EXPECT_FALSE(sessions_.Admits(request));
  request.peer = "10.0.0.7:1000";
  EXPECT_FALSE(sessions_.Admits(request)) << "from another machine";
}

TEST_F(PortalSessionsTest, ASessionEndsAndOutlivesARestart) {
  const http::Request request = SignedIn("GET");
  const PortalSessions again(kKey, &clock_, UserByPort);
  EXPECT_TRUE(again.Admits(request));
  const PortalSessions another("of-another-service", &clock_, UserByPort);
  EXPECT_FALSE(another.Admits(request));
  clock_.Advance(PortalSessions::kSessionLasts + absl::Seconds(1));
  EXPECT_FALSE(again.Admits(request));
}

TEST_F(PortalSessionsTest, AChangedCookieOpensNothing) {
  const http::Request good = SignedIn("GET");
  const std::string cookie = good.headers.at("cookie");
  const size_t value = cookie.find("tutti_session_"), dot = cookie.find('.', value);
  std::string longer = cookie;
  longer.replace(cookie.find('=', value) + 1, dot - cookie.find('=', value) - 1, "9999999999");
  std::string cut = cookie;
  cut.erase(dot + 1, 64);
  for (const std::string& changed :
       {longer, cut, std::string("tutti_session_x=1.2"), std::string("="), std::string(";;;")}) {
    http::Request request = good;
    request.headers["cookie"] = changed;
    EXPECT_FALSE(sessions_.Admits(request)) << changed;
  }
}

TEST_F(PortalSessionsTest, ManyLinksTakeBoundedMemory) {
  const std::string first = sessions_.MakeWord();
  clock_.Advance(absl::Seconds(1));
  for (int i = 0; i < 1000; ++i) sessions_.MakeWord();
  EXPECT_FALSE(sessions_.Open(first, FromPage("POST")).ok()) << "the oldest has gone";
  EXPECT_TRUE(sessions_.Open(sessions_.MakeWord(), FromPage("POST")).ok());
}

int PortOf(int socket) {
  sockaddr_in address = {};
  socklen_t size = sizeof address;
  EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

TEST(UserOfLocalPeer, IsTheOneWhoseProcessHasTheOtherEnd) {
  const base::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const base::UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  const int port = PortOf(listener.get());
  const std::string peer = absl::StrCat("127.0.0.1:", PortOf(client.get()));
  EXPECT_EQ(UserOfLocalPeer(peer, "127.0.0.1", port), ::geteuid());
  EXPECT_EQ(UserOfLocalPeer("127.0.0.1:1", "127.0.0.1", port), std::nullopt);
  EXPECT_EQ(UserOfLocalPeer(peer, "127.0.0.1", port == 1 ? 2 : 1), std::nullopt);
  for (const char* odd : {"", "127.0.0.1", "[::1]:80", "127.0.0.1:x", "host:80"}) {
    EXPECT_EQ(UserOfLocalPeer(odd, "127.0.0.1", port), std::nullopt) << odd;
  }
}

}  // namespace
}  // namespace tutti::api
