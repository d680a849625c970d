#include "platform/api/portal/portal_sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::api {
namespace {

using ::testing::HasSubstr;

constexpr char kServiceKey[] = "of-the-service-0123456789";
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
  http::Request SignedIn(const std::string& method, PeerUser user = kUser) {
    return SignedInAt(sessions_, method, user);
  }
  static http::Request SignedInAt(PortalSessions& sessions, const std::string& method,
                                  PeerUser user = kUser) {
    const auto session = sessions.Open(FromPage("POST"), user);
    EXPECT_TRUE(session.ok()) << session.status();
    http::Request request = FromPage(method);
    request.headers["cookie"] =
        absl::StrCat("other=1; ", session->cookie.substr(0, session->cookie.find(';')), "; last=2");
    request.headers["x-tutti-portal"] = session->write_token;
    return request;
  }

  base::ManualClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  const base::TemporaryDirectory folder_;
  const std::filesystem::path file_ = folder_.path() / "portal-sessions.json";
  PortalSessions sessions_{kServiceKey, file_, &clock_};
};

class PortalWordsTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kService = 990;  // the user of the service

  absl::Status Use(absl::string_view word, PeerUser user, bool by_tls = false) {
    return words_.Use(word, user, by_tls);
  }

  base::ManualClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  PortalWords words_{kService, &clock_};
};

TEST_F(PortalWordsTest, AWordOpensOneSessionWithinItsTime) {
  const std::string word = words_.Make(kUser, false), late = words_.Make(kUser, false);
  EXPECT_TRUE(words_.IsUnused(word));
  EXPECT_TRUE(Use(word, kUser).ok());
  EXPECT_FALSE(words_.IsUnused(word));
  EXPECT_THAT(Use(word, kUser).message(), HasSubstr("tutti portal makes another"));
  EXPECT_FALSE(Use("", kUser).ok());
  EXPECT_FALSE(Use(std::string(32, '0'), kUser).ok());
  clock_.Advance(PortalWords::kLast + absl::Seconds(1));
  EXPECT_FALSE(Use(late, kUser).ok());
  EXPECT_FALSE(words_.IsUnused(late));
}

// Whoever reads it first, from a command line or over a shoulder, can not sign in first.
TEST_F(PortalWordsTest, AWordIsOfWhoAskedForItAndNobodyElseUsesItUp) {
  const std::string word = words_.Make(kUser, false);
  EXPECT_THAT(Use(word, kUser + 1).message(), HasSubstr("another user"));
  EXPECT_THAT(Use(word, 0).message(), HasSubstr("another user"));
  EXPECT_THAT(Use(word, std::nullopt).message(), HasSubstr("of the service's machine"));
  EXPECT_TRUE(Use(word, kUser).ok());
}

TEST_F(PortalWordsTest, AWordForOtherMachinesOpensByTlsWhoeverPassesItOn) {
  EXPECT_TRUE(Use(words_.Make(kUser, true), std::nullopt, true).ok());
  EXPECT_TRUE(Use(words_.Make(kUser, true), kUser + 1, true).ok()) << "a proxy of this machine";
  EXPECT_FALSE(Use(words_.Make(kUser, false), kUser + 1, true).ok());
  const std::string from_there = words_.Make(std::nullopt, true);
  EXPECT_FALSE(Use(from_there, kUser).ok());
  EXPECT_TRUE(Use(from_there, kService).ok()) << "by ssh -L";
}

TEST_F(PortalWordsTest, NoWordOutlivesASigningOutOfAll) {
  const std::string word = words_.Make(kUser, false);
  words_.Clear();
  EXPECT_FALSE(Use(word, kUser).ok());
}

TEST_F(PortalWordsTest, ManyLinksTakeBoundedMemory) {
  const std::string first = words_.Make(kUser, false);
  clock_.Advance(absl::Seconds(1));
  for (int i = 0; i < 1000; ++i) words_.Make(kUser, false);
  EXPECT_FALSE(Use(first, kUser).ok()) << "the oldest has gone";
  EXPECT_TRUE(Use(words_.Make(kUser, false), kUser).ok());
}

TEST_F(PortalSessionsTest, TheCookieIsForNoScriptAndNoOtherSite) {
  const auto session = sessions_.Open(FromPage("POST"), kUser);
  ASSERT_TRUE(session.ok()) << session.status();
  for (const char* word : {"; HttpOnly", "; SameSite=Strict", "; Path=/v1/", "; Max-Age=604800"}) {
    EXPECT_THAT(session->cookie, HasSubstr(word));
  }
  EXPECT_FALSE(absl::StrContains(session->cookie, "Secure"));
  EXPECT_FALSE(absl::StrContains(session->cookie, session->write_token));
  http::Request proxied = FromPage("POST");
  proxied.headers["host"] = "tutti.example";
  proxied.headers["origin"] = "https://tutti.example";
  const auto behind = sessions_.Open(proxied, kUser);
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
    EXPECT_FALSE(sessions_.Open(request, kUser).ok()) << origin;
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
  const PortalSessions again(kServiceKey, file_, &clock_);
  EXPECT_TRUE(again.Admits(request, kUser));
  const PortalSessions another("of-another-service", file_, &clock_);
  EXPECT_FALSE(another.Admits(request, kUser));
  const PortalSessions in_memory(kServiceKey, "", &clock_);
  EXPECT_FALSE(in_memory.Admits(request, kUser));
  clock_.Advance(PortalSessions::kLast + absl::Seconds(1));
  EXPECT_FALSE(again.Admits(request, kUser));
}

TEST_F(PortalSessionsTest, AChangedCookieOpensNothing) {
  const http::Request good = SignedIn("GET");
  const std::string cookie = good.headers.at("cookie");
  const size_t value = cookie.find("tutti_session_"), dot = cookie.find('.', value);
  std::string longer = cookie;
  longer.replace(cookie.find('=', value) + 1, dot - cookie.find('=', value) - 1, "9999999999");
  std::string cut = cookie;
  cut.erase(cookie.find('.', dot + 1) + 1, 64);
  std::string of_another = cookie;
  of_another[dot + 1] = of_another[dot + 1] == '0' ? '1' : '0';
  for (const std::string& changed : {longer, cut, of_another, std::string("tutti_session_x=1.2"),
                                     std::string("="), std::string(";;;")}) {
    http::Request request = good;
    request.headers["cookie"] = changed;
    EXPECT_FALSE(sessions_.Admits(request, kUser)) << changed;
  }
}

TEST_F(PortalSessionsTest, WhoSignsOutEndsTheSessionForEveryCopyOfTheCookie) {
  const http::Request mine = SignedIn("POST"), other = SignedIn("POST");
  ASSERT_TRUE(sessions_.End(mine).ok());
  EXPECT_FALSE(sessions_.Admits(mine, kUser));
  EXPECT_TRUE(sessions_.Admits(other, kUser));
  const PortalSessions again(kServiceKey, file_, &clock_);
  EXPECT_FALSE(again.Admits(mine, kUser)) << "after a restart";
  EXPECT_TRUE(again.Admits(other, kUser));
  ASSERT_TRUE(sessions_.EndAll().ok());
  EXPECT_FALSE(sessions_.Admits(other, kUser));
  EXPECT_FALSE(PortalSessions(kServiceKey, file_, &clock_).Admits(other, kUser));
  EXPECT_TRUE(sessions_.Admits(SignedIn("GET"), kUser));
}

TEST_F(PortalSessionsTest, EndedSessionsAreForgottenOnceTheyWouldHaveEndedAnyway) {
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(sessions_.End(SignedIn("GET")).ok());
  const size_t size = base::ReadFile(file_)->size();
  clock_.Advance(PortalSessions::kLast + absl::Seconds(1));
  ASSERT_TRUE(sessions_.End(SignedIn("GET")).ok());
  EXPECT_LT(base::ReadFile(file_)->size(), size / 4);
}

TEST_F(PortalSessionsTest, WhatCannotBeKeptHasNotEnded) {
  const http::Request request = SignedIn("GET");
  std::filesystem::remove_all(folder_.path());
  EXPECT_FALSE(sessions_.End(request).ok());
  EXPECT_FALSE(sessions_.EndAll().ok());
  EXPECT_TRUE(sessions_.Admits(request, kUser));
}

TEST_F(PortalSessionsTest, AFileThatIsNoneOfItsOwnSignsEverybodyOut) {
  const http::Request request = SignedIn("GET");
  for (const char* text : {"", "{", "[]", "{\"era\": 1}", "{\"ended\": {}}"}) {
    ASSERT_TRUE(base::WriteFileAtomic(file_, text).ok());
    PortalSessions again(kServiceKey, file_, &clock_);
    EXPECT_FALSE(again.Admits(request, kUser)) << text;
    EXPECT_TRUE(again.Admits(SignedInAt(again, "GET"), kUser)) << text;
  }
}

}  // namespace
}  // namespace tutti::api
