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
constexpr uint32_t kUser = 1000;

class PortalSessionsTest : public ::testing::Test {
 protected:
  // What a page of the portal sends.
  static http::Request FromPage(const std::string& method) {
    return {.method = method,
            .path = "/v1/jobs",
            .headers = {{"host", kHost},
                        {"origin", absl::StrCat("http://", kHost)},
                        {"sec-fetch-site", "same-origin"}},
            .peer = "127.0.0.1:40000"};
  }
  http::Request SignedIn(const std::string& method, PortalSessions::User user = kUser) {
    const auto session = sessions_.Open(sessions_.MakeWord(), FromPage("POST"), user);
    EXPECT_TRUE(session.ok()) << session.status();
    http::Request request = FromPage(method);
    request.headers["cookie"] =
        absl::StrCat("other=1; ", session->cookie.substr(0, session->cookie.find(';')), "; last=2");
    request.headers["x-tutti-portal"] = session->write_token;
    return request;
  }

  base::ManualClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  PortalSessions sessions_{kKey, &clock_};
};

TEST_F(PortalSessionsTest, AWordOpensOneSessionWithinItsTime) {
  const std::string word = sessions_.MakeWord(), late = sessions_.MakeWord();
  EXPECT_TRUE(sessions_.Open(word, FromPage("POST"), kUser).ok());
  EXPECT_THAT(sessions_.Open(word, FromPage("POST"), kUser).status().message(),
              HasSubstr("tutti portal makes another"));
  EXPECT_FALSE(sessions_.Open("", FromPage("POST"), kUser).ok());
  EXPECT_FALSE(sessions_.Open(std::string(32, '0'), FromPage("POST"), kUser).ok());
  clock_.Advance(PortalSessions::kWordLasts + absl::Seconds(1));
  EXPECT_FALSE(sessions_.Open(late, FromPage("POST"), kUser).ok());
}

TEST_F(PortalSessionsTest, TheCookieIsForNoScriptAndNoOtherSite) {
  const auto session = sessions_.Open(sessions_.MakeWord(), FromPage("POST"), kUser);
  ASSERT_TRUE(session.ok()) << session.status();
  for (const char* word : {"; HttpOnly", "; SameSite=Strict", "; Path=/v1/", "; Max-Age=604800"}) {
    EXPECT_THAT(session->cookie, HasSubstr(word));
  }
  EXPECT_FALSE(absl::StrContains(session->cookie, "Secure"));
  EXPECT_FALSE(absl::StrContains(session->cookie, session->write_token));
  http::Request proxied = FromPage("POST");
  proxied.headers["host"] = "tutti.example";
  proxied.headers["origin"] = "https://tutti.example";
  const auto behind = sessions_.Open(sessions_.MakeWord(), proxied, kUser);
  ASSERT_TRUE(behind.ok()) << behind.status();
  EXPECT_THAT(behind->cookie, HasSubstr("; Secure"));
}

TEST_F(PortalSessionsTest, APageReadsByTheCookieAndChangesWithTheTokenToo) {
  EXPECT_TRUE(sessions_.Admits(SignedIn("GET"), kUser));
  EXPECT_TRUE(sessions_.Admits(SignedIn("POST"), kUser));
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH"}) {
    http::Request without = SignedIn(method);
    without.headers.erase("x-tutti-portal");
    EXPECT_FALSE(sessions_.Admits(without, kUser)) << method << " with the cookie alone";
  }
  http::Request reading = SignedIn("GET");
  reading.headers.erase("x-tutti-portal");
  EXPECT_TRUE(sessions_.Admits(reading, kUser));
  reading.headers.erase("cookie");
  EXPECT_FALSE(sessions_.Admits(reading, kUser));
}

TEST_F(PortalSessionsTest, ARequestOfAnotherOriginOpensNothing) {
  for (const char* origin : {"http://evil.example", "null", "http://127.0.0.1:8888",
                             "http://127.0.0.1:6281.evil.example", "http://localhost:6281"}) {
    http::Request request = SignedIn("POST");
    request.headers["origin"] = origin;
    EXPECT_FALSE(sessions_.Admits(request, kUser)) << origin;
    request.method = "GET";
    EXPECT_FALSE(sessions_.Admits(request, kUser)) << origin;
    request = FromPage("POST");
    request.headers["origin"] = origin;
    EXPECT_FALSE(sessions_.Open(sessions_.MakeWord(), request, kUser).ok()) << origin;
  }
  for (const char* site : {"cross-site", "same-site"}) {
    http::Request request = SignedIn("GET");
    request.headers.erase("origin");
    request.headers["sec-fetch-site"] = site;
    EXPECT_FALSE(sessions_.Admits(request, kUser)) << site;
  }
  http::Request typed = SignedIn("GET");
  typed.headers.erase("origin");
  typed.headers["sec-fetch-site"] = "none";
  EXPECT_TRUE(sessions_.Admits(typed, kUser)) << "a file's address in a tab of its own";
}

// A name of an attacker that was made to lead to loopback (DNS rebinding).
TEST_F(PortalSessionsTest, ASessionIsOfOneHostName) {
  http::Request request = SignedIn("GET");
  request.headers["host"] = "rebound.evil.example:6281";
  request.headers["origin"] = "http://rebound.evil.example:6281";
  EXPECT_FALSE(sessions_.Admits(request, kUser));
}

// Cookies go to every port of a host, also to that of another user's program.
TEST_F(PortalSessionsTest, ASessionIsOfOneUserOfTheMachine) {
  const http::Request request = SignedIn("GET");
  EXPECT_TRUE(sessions_.Admits(request, kUser));
  EXPECT_FALSE(sessions_.Admits(request, 1001));
  EXPECT_FALSE(sessions_.Admits(request, std::nullopt)) << "from another machine";
  const http::Request from_afar = SignedIn("GET", std::nullopt);
  EXPECT_TRUE(sessions_.Admits(from_afar, std::nullopt));
  EXPECT_FALSE(sessions_.Admits(from_afar, kUser));
}

TEST_F(PortalSessionsTest, ASessionEndsAndOutlivesARestart) {
  const http::Request request = SignedIn("GET");
  const PortalSessions again(kKey, &clock_);
  EXPECT_TRUE(again.Admits(request, kUser));
  const PortalSessions another("of-another-service", &clock_);
  EXPECT_FALSE(another.Admits(request, kUser));
  clock_.Advance(PortalSessions::kSessionLasts + absl::Seconds(1));
  EXPECT_FALSE(again.Admits(request, kUser));
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
    EXPECT_FALSE(sessions_.Admits(request, kUser)) << changed;
  }
}

TEST_F(PortalSessionsTest, ManyLinksTakeBoundedMemory) {
  const std::string first = sessions_.MakeWord();
  clock_.Advance(absl::Seconds(1));
  for (int i = 0; i < 1000; ++i) sessions_.MakeWord();
  EXPECT_FALSE(sessions_.Open(first, FromPage("POST"), kUser).ok()) << "the oldest has gone";
  EXPECT_TRUE(sessions_.Open(sessions_.MakeWord(), FromPage("POST"), kUser).ok());
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
