// Covers: page_listener.cc.
#include "platform/api/portal/portal_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "http/client/client.h"
#include "http/socket_name.h"
#include "platform/api/api.h"
#include "platform/api/callers_for_tests.h"
#include "platform/service/world_for_tests.h"

namespace tutti::api {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A real server with a page of its own.
class PortalRoutesTest : public ::testing::Test {
 protected:
  PortalRoutesTest() {
    const std::filesystem::path directory = folder_.path() / "state";
    EXPECT_TRUE(base::MakeDirectories(directory).ok());
    EXPECT_TRUE(base::MakeDirectories(page_ / "assets").ok());
    engine_ = std::make_unique<service::DiskEngine>(folder_.path() / "engine");
    store_ = *store::Store::Open(directory / "tutti.db");
    service_ = *service::Service::Open({.directory = directory,
                                        .launcher_file = directory / "launcher.json",
                                        .launcher_key = kLauncherKey},
                                       store_.get(), engine_.get(), &clock_);
    service_->Run();
  }
  ~PortalRoutesTest() override {
    service_->Stop();
    server_.reset();
  }
  void Start(const std::filesystem::path& page, int port = 0) {
    server_ = *ApiServer::Start({.port = 0,
                                 .tokens = {.user = kUserToken, .launcher_key = kLauncherKey},
                                 .portal = page,
                                 .portal_port = port},
                                service_.get());
  }
  void WritePage() {
    const auto write = [&](const char* name, const char* text) {
      EXPECT_TRUE(base::WriteFileAtomic(page_ / name, text).ok());
    };
    write("index.html", "<p>page");
    write("assets/a-1.js", "plain");
    write("assets/a-1.js.gz", "packed");
    write("icon.svg", "<svg/>");
  }
  std::string Origin() const {
    const auto url = server_->portal_url();
    EXPECT_TRUE(url.ok()) << url.status();
    return url.value_or("");
  }
  std::string Port() const { return Origin().substr(Origin().rfind(':')); }  // ":6281"
  http::ClientResponse Send(const std::string& method, const std::string& target,
                            const std::vector<std::pair<std::string, std::string>>& headers = {}) {
    http::Client client("http://127.0.0.1" + Port(), "");  // only browsers know its name
    http::ClientRequest request{.method = method, .target = target, .headers = headers};
    if (headers.empty() || headers[0].first != "Host") {
      request.headers.emplace_back("Host", Origin().substr(std::string("http://").size()));
    }
    auto response = client.Send(request);
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *std::move(response) : http::ClientResponse{};
  }
  // Returns the cookie.
  std::string SignIn() {
    const std::string word = json::parse(SendAsUser("POST", "/v1/portal-links").body)["word"];
    const auto session = Send("POST", "/v1/portal-sessions", {{"X-Tutti-Word", word}});
    EXPECT_EQ(session.status, 200) << session.body;
    const std::string set = session.headers.at("set-cookie");
    return set.substr(0, set.find(';'));
  }
  http::ClientResponse SendAsUser(const std::string& method, const std::string& target) {
    http::Client client(server_->url(), kUserToken);
    auto response = client.Send({.method = method, .target = target});
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *std::move(response) : http::ClientResponse{};
  }

  const base::TemporaryDirectory folder_;
  const std::filesystem::path page_ = folder_.path() / "portal";
  const base::SystemClock clock_;
  std::unique_ptr<service::DiskEngine> engine_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<service::Service> service_;
  std::unique_ptr<ApiServer> server_;
};

TEST_F(PortalRoutesTest, AnswersItsFilesAndTheDocumentForEveryView) {
  WritePage();
  Start(page_);
  for (const char* view : {"/portal/", "/portal/jobs/a/logs", "/portal/index.html"}) {
    const auto page = Send("GET", view);
    EXPECT_EQ(page.status, 200) << view;
    EXPECT_EQ(page.body, "<p>page") << view;
    EXPECT_THAT(page.headers.at("content-type"), StartsWith("text/html")) << view;
    EXPECT_THAT(page.headers.at("content-security-policy"), HasSubstr("script-src 'self';"))
        << view;
    EXPECT_THAT(page.headers.at("content-security-policy"), HasSubstr("frame-ancestors 'none'"));
    EXPECT_EQ(page.headers.at("cache-control"), "no-cache") << view;
  }
  EXPECT_EQ(Send("GET", "/portal/assets/a-1.js").body, "plain");
  const auto packed = Send("GET", "/portal/assets/a-1.js", {{"Accept-Encoding", "br, gzip"}});
  EXPECT_EQ(packed.body, "packed");
  EXPECT_EQ(packed.headers.at("content-encoding"), "gzip");
  EXPECT_THAT(packed.headers.at("cache-control"), HasSubstr("immutable"));
  EXPECT_EQ(Send("GET", "/portal/icon.svg").headers.at("content-type"), "image/svg+xml");
  EXPECT_EQ(Send("GET", "/portal/assets/none.js").status, 404);
  EXPECT_EQ(Send("GET", "/").status, 302);
  EXPECT_EQ(Send("GET", "/portal").headers.at("location"), "/portal/");
}

// The path is a stranger's: an absolute one, dots or a folder's name lead nowhere else.
TEST_F(PortalRoutesTest, AnswersNoFileButItsOwn) {
  WritePage();
  const std::string secret = (folder_.path() / "state" / "secret.txt").string();
  ASSERT_TRUE(base::WriteFileAtomic(secret, "not for strangers").ok());
  ASSERT_TRUE(base::WriteFileAtomic(page_ / "inputs", "of the build").ok());
  for (const std::string& page : {page_.string(), std::string()}) {
    Start(page);
    for (const std::string& path :
         {"/" + secret, absl::StrReplaceAll(secret, {{"/", "%2f"}}), std::string("inputs"),
          std::string("assets/"), std::string("assets//etc/passwd"), "assets/" + secret,
          std::string("assets/%2e%2e/inputs"), std::string("assets/..%2finputs"),
          std::string("%2e%2e/state/secret.txt"), std::string("assets/.hidden")}) {
      const auto answer =
          page.empty() ? SendAsUser("GET", "/portal/" + path) : Send("GET", "/portal/" + path);
      EXPECT_NE(answer.body, "not for strangers") << path;
      EXPECT_NE(answer.body, "of the build") << path;
      EXPECT_TRUE(answer.body == "<p>page" || answer.status >= 400) << path << answer.body;
      EXPECT_TRUE(!page.empty() || answer.status >= 400) << path;
    }
  }
}

TEST_F(PortalRoutesTest, SaysWhatToDoWhereItsFilesAreMissingAndHasThemOnceTheyAreBuilt) {
  Start(page_);
  const auto none = Send("GET", "/portal/");
  EXPECT_EQ(none.status, 503);
  EXPECT_THAT(none.body, HasSubstr("tools/build-portal"));
  EXPECT_FALSE(json::parse(SendAsUser("POST", "/v1/portal-links").body)["there"].get<bool>());
  WritePage();
  EXPECT_EQ(Send("GET", "/portal/").status, 200);
  EXPECT_TRUE(json::parse(SendAsUser("POST", "/v1/portal-links").body)["there"].get<bool>());
}

TEST_F(PortalRoutesTest, ALinkSignsABrowserIn) {
  WritePage();
  Start(page_);
  EXPECT_EQ(Send("GET", "/v1/jobs").status, 401);
  const auto answer = SendAsUser("POST", "/v1/portal-links");
  ASSERT_EQ(answer.status, 201) << answer.body;
  const std::string link = json::parse(answer.body)["url"];
  ASSERT_THAT(link, StartsWith(Origin() + "/portal/#sign-in="));
  const std::string word = link.substr(link.find('=') + 1);
  const auto open = [&] { return Send("POST", "/v1/portal-sessions", {{"X-Tutti-Word", word}}); };
  const auto session = open();
  ASSERT_EQ(session.status, 200) << session.body;
  EXPECT_EQ(open().status, 401) << "a second time";
  const std::string set = session.headers.at("set-cookie");
  const std::string cookie = set.substr(0, set.find(';'));
  EXPECT_EQ(Send("GET", "/v1/jobs", {{"Cookie", cookie}}).status, 200);
  EXPECT_EQ(Send("GET", "/v1/jobs", {{"Cookie", cookie}, {"Origin", "http://evil.example"}}).status,
            401);
  EXPECT_EQ(Send("POST", "/v1/jobs/none/cancel", {{"Cookie", cookie}}).status, 401);
  const std::string token = json::parse(session.body)["write_token"];
  EXPECT_EQ(
      Send("POST", "/v1/jobs/none/cancel", {{"Cookie", cookie}, {"X-Tutti-Portal", token}}).status,
      404);
  EXPECT_EQ(
      Send("POST", "/v1/portal-links", {{"Cookie", cookie}, {"X-Tutti-Portal", token}}).status, 401)
      << "else a session could outlive its week";
  const auto closed =
      Send("DELETE", "/v1/portal-sessions", {{"Cookie", cookie}, {"X-Tutti-Portal", token}});
  EXPECT_THAT(closed.headers.at("set-cookie"), HasSubstr("Max-Age=0"));
  EXPECT_EQ(Send("GET", "/v1/jobs", {{"Cookie", cookie}}).status, 401) << "a copy of it";
}

TEST_F(PortalRoutesTest, TheTokenSignsEveryPageOut) {
  WritePage();
  Start(page_);
  const std::string cookie = SignIn();
  EXPECT_EQ(Send("GET", "/v1/jobs", {{"Cookie", cookie}}).status, 200);
  const std::string word = json::parse(SendAsUser("POST", "/v1/portal-links").body)["word"];
  EXPECT_EQ(SendAsUser("DELETE", "/v1/portal-sessions?everywhere=true").status, 200);
  EXPECT_EQ(Send("POST", "/v1/portal-sessions", {{"X-Tutti-Word", word}}).status, 401);
  EXPECT_EQ(Send("GET", "/v1/jobs", {{"Cookie", cookie}}).status, 401);
}

TEST_F(PortalRoutesTest, WhetherALinkWasUsedIsToldToWhoMayMakeOne) {
  WritePage();
  Start(page_);
  const std::string word = json::parse(SendAsUser("POST", "/v1/portal-links").body)["word"];
  const auto unused = [&] {
    http::Client client(server_->url(), kUserToken);
    return client.Send({.target = "/v1/portal-links", .headers = {{"X-Tutti-Word", word}}})->body;
  };
  EXPECT_EQ(json::parse(unused()), json({{"unused", true}}));
  EXPECT_EQ(Send("POST", "/v1/portal-sessions", {{"X-Tutti-Word", word}}).status, 200);
  EXPECT_EQ(json::parse(unused()), json({{"unused", false}}));
  EXPECT_EQ(Send("GET", "/v1/portal-links", {{"X-Tutti-Word", word}}).status, 401);
}

// What took the port meanwhile may have left a worker at the name of before.
TEST_F(PortalRoutesTest, EachStartHasANameAndSessionsOfItsOwn) {
  WritePage();
  Start(page_);
  const std::string before = Origin(), cookie = SignIn();
  server_.reset();
  Start(page_);
  EXPECT_NE(Origin(), before);
  EXPECT_THAT(Origin(), ::testing::ContainsRegex("^http://tutti-[0-9a-f]{16}\\.localhost:[0-9]+$"));
  EXPECT_EQ(Send("GET", "/v1/jobs", {{"Cookie", cookie}}).status, 401);
}

TEST_F(PortalRoutesTest, AnyOtherNameIsLedToTheOneAndHasNoSession) {
  WritePage();
  Start(page_);
  const std::string cookie = SignIn();
  const std::string port = Port();
  for (const std::string& host :
       {absl::StrCat("127.0.0.1", port), absl::StrCat("[::1]", port),
        absl::StrCat("localhost", port), absl::StrCat("tutti-0.localhost", port),
        absl::StrCat("evil.example", port)}) {
    const auto page = Send("GET", "/portal/jobs/a/metrics?x=time", {{"Host", host}});
    EXPECT_EQ(page.status, 302) << host;
    EXPECT_EQ(page.headers.at("location"), Origin() + "/portal/jobs/a/metrics?x=time");
    const auto call = Send("GET", "/v1/jobs", {{"Host", host}, {"Cookie", cookie}});
    EXPECT_EQ(call.status, 421) << host;
    EXPECT_THAT(call.body, HasSubstr(Origin()));
  }
  const auto tunneled = Send("GET", "/portal/", {{"Host", "127.0.0.1:7000"}});
  EXPECT_THAT(tunneled.headers.at("location"), ::testing::EndsWith(".localhost:7000/portal/"));
  const auto odd = Send("GET", "/portal/", {{"Host", "x:1@evil.example"}});
  EXPECT_THAT(odd.headers.at("location"), ::testing::EndsWith(".localhost/portal/"));
}

TEST_F(PortalRoutesTest, BothLoopbackAddressesAreTheServices) {
  WritePage();
  Start(page_);
  if (!http::IsOfThisMachine("::1")) GTEST_SKIP() << "no IPv6";
  const std::string port = Port();
  for (const std::string& address :
       {absl::StrCat("http://127.0.0.1", port), "http://[::1]" + port}) {
    http::Client client(address, "");
    const auto answer =
        client.Send({.target = "/portal/",
                     .headers = {{"Host", Origin().substr(std::string("http://").size())}}});
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->body, "<p>page");
  }
}

TEST_F(PortalRoutesTest, APortThatIsTakenAtEitherAddressIsSaid) {
  WritePage();
  for (const char* address : {"127.0.0.1", "::1"}) {
    if (!http::IsOfThisMachine(address)) continue;
    auto taken = http::Server::Start({.address = address},
                                     [](const auto&, auto&) { return http::Response(); });
    ASSERT_TRUE(taken.ok()) << taken.status();
    Start(page_, (*taken)->port());
    const auto answer = SendAsUser("POST", "/v1/portal-links");
    EXPECT_EQ(answer.status, 409);
    EXPECT_THAT(answer.body, HasSubstr("is taken by another program"));
    EXPECT_FALSE(server_->portal_url().ok());
  }
}

TEST_F(PortalRoutesTest, AServiceWithoutAPortalSaysSo) {
  Start("");
  const auto answer = SendAsUser("POST", "/v1/portal-links");
  EXPECT_EQ(answer.status, 409);
  EXPECT_THAT(answer.body, HasSubstr("--no-portal"));
  EXPECT_THAT(server_->portal_url().status().message(), HasSubstr("--no-portal"));
}

TEST_F(PortalRoutesTest, WhatAPageSendsThatIsNoWordIsRefused) {
  WritePage();
  Start(page_);
  EXPECT_EQ(Send("POST", "/v1/portal-sessions").status, 400);
  EXPECT_EQ(Send("POST", "/v1/portal-sessions", {{"X-Tutti-Word", "x"}}).status, 401);
}

}  // namespace
}  // namespace tutti::api
