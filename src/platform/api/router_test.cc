// Covers: routing/router.cc.
#include "platform/api/routing/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "platform/api/rest.h"
#include "platform/service/attempt/launcher_token.h"

namespace tutti::api {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Matches, NamesTheParts) {
  std::map<std::string, std::string> parts;
  EXPECT_TRUE(Matches("/v1/jobs/{job}", "/v1/jobs/a b", parts));
  EXPECT_THAT(parts, ElementsAre(Pair("job", "a b")));
  EXPECT_TRUE(Matches("/v1/jobs/{job}/files/{path...}", "/v1/jobs/j/files/a/b/c", parts));
  EXPECT_THAT(parts, ElementsAre(Pair("job", "j"), Pair("path", "a/b/c")));
  EXPECT_TRUE(Matches("/v1/jobs", "/v1/jobs", parts));
  EXPECT_TRUE(parts.empty());
}

TEST(Matches, WantsTheWholePath) {
  std::map<std::string, std::string> parts;
  for (const char* path : {"", "/", "/v1/jobs", "/v1/jobs/", "/v1/jobs/j/", "/v1/jobs/j/x",
                           "/v2/jobs/j", "//v1/jobs/j"}) {
    EXPECT_FALSE(Matches("/v1/jobs/{job}", path, parts)) << path;
  }
  EXPECT_FALSE(Matches("/v1/jobs/{job}/files/{path...}", "/v1/jobs/j/files", parts));
}

class NoBody final : public http::Connection {
 public:
  absl::StatusOr<std::string> ReadBody(uint64_t) override { return ""; }
  absl::Status ReadBodyTo(const std::function<absl::Status(absl::string_view)>&,
                          uint64_t) override {
    return absl::OkStatus();
  }
  int64_t ContentLength() const override { return 0; }
  bool Closed() override { return false; }
  std::function<void()> Waker() override {
    return [] {};
  }
};

constexpr char kKey[] = "key-0123456789abcdef", kFormer[] = "former-0123456789abcdef";

class RouterTest : public ::testing::Test {
 protected:
  static bool Admits(const Router& router, const std::string& path, const std::string& token) {
    http::Request request{.method = "GET", .path = path};
    request.headers["authorization"] = "Bearer " + token;
    return !router.Admit(request).refusal.has_value();
  }
  static std::vector<Route> Routes() {
    return {{"GET", "/allocations/{allocation}/go", Access::kLauncher, nullptr},
            {"GET", "/snapshots/{snapshot}", Access::kLauncher, nullptr}};
  }
};

TEST_F(RouterTest, TheTokenOfAnEarlierVersionOpensTheAllocationsThatItHad) {
  const Router router(
      Routes(),
      {.launcher_key = kKey, .former_launcher = kFormer, .former_allocations = {"before.1"}});
  EXPECT_TRUE(Admits(router, "/allocations/before.1/go", kFormer));
  EXPECT_TRUE(Admits(router, "/snapshots/x", kFormer));
  EXPECT_FALSE(Admits(router, "/allocations/after.1/go", kFormer));
  EXPECT_TRUE(Admits(router, "/allocations/after.1/go", service::LauncherToken(kKey, "after.1")));
  EXPECT_FALSE(Admits(router, "/allocations/before.1/go", service::LauncherToken(kKey, "after.1")));
}

TEST_F(RouterTest, AMonitorsTokenOpensWhatMonitorsReadAlone) {
  const Router router(
      {{"GET", "/metrics", Access::kMonitor, nullptr}, {"GET", "/v1/jobs", Access::kUser, nullptr}},
      {.user = "of-a-user", .launcher_key = kKey});
  EXPECT_TRUE(Admits(router, "/metrics", service::MetricsToken(kKey)));
  EXPECT_TRUE(Admits(router, "/metrics", "of-a-user"));
  EXPECT_FALSE(Admits(router, "/metrics", service::LauncherToken(kKey, "job.1")));
  EXPECT_FALSE(Admits(router, "/v1/jobs", service::MetricsToken(kKey)));
  const Router keyless({{"GET", "/metrics", Access::kMonitor, nullptr}}, {.user = "of-a-user"});
  EXPECT_FALSE(Admits(keyless, "/metrics", ""));
}

TEST_F(RouterTest, TheTokenOfAJobsRunOpensTrackingAloneAndWhileItMay) {
  std::set<std::string> open = {"beef"};
  std::string seen = "none";
  const Router router({{"GET", "/mlflow", Access::kTracking,
                        [&seen](const Call& call) {
                          seen = call.job_run;
                          return http::JsonResponse("{}");
                        }},
                       {"GET", "/v1/jobs", Access::kUser, nullptr},
                       {"GET", "/metrics", Access::kMonitor, nullptr},
                       {"GET", "/allocations/{allocation}/go", Access::kLauncher, nullptr}},
                      {.user = "of-a-user",
                       .launcher_key = kKey,
                       .may_track = [&](const std::string& run) { return open.contains(run); }});
  const std::string token = service::RunToken(kKey, "beef");
  EXPECT_TRUE(Admits(router, "/mlflow", token));
  EXPECT_TRUE(Admits(router, "/mlflow", "of-a-user"));
  EXPECT_FALSE(Admits(router, "/mlflow", token + "0"));
  EXPECT_FALSE(Admits(router, "/mlflow", service::RunToken("another key", "beef")));
  EXPECT_FALSE(Admits(router, "/mlflow", "beef"));
  EXPECT_FALSE(Admits(router, "/mlflow", ""));
  EXPECT_FALSE(Admits(router, "/mlflow", service::LauncherToken(kKey, "beef")));
  for (const char* path : {"/v1/jobs", "/metrics", "/allocations/beef/go"}) {
    EXPECT_FALSE(Admits(router, path, token)) << path;
  }
  http::Request request{.method = "GET", .path = "/mlflow"};
  request.headers["authorization"] = "Bearer " + token;
  EXPECT_EQ(router.Admit(request).role, http::Role::kUser) << "launchers wait for none of it";
  NoBody body;
  router.Answer(request, body);
  EXPECT_EQ(seen, "beef");
  request.headers["authorization"] = "Bearer of-a-user";
  EXPECT_EQ(router.Admit(request).role, http::Role::kUser);
  router.Answer(request, body);
  EXPECT_EQ(seen, "");
  open.clear();
  EXPECT_FALSE(Admits(router, "/mlflow", token)) << "its job is over";
}

TEST_F(RouterTest, SaysWhichRouteARequestIsOf) {
  const Router router(Routes(), {.launcher_key = kKey});
  http::Request request{.method = "GET", .path = "/snapshots/x"};
  EXPECT_EQ(router.Admit(request).kind, 1) << "also of one that is refused";
  request.path = "/nowhere";
  EXPECT_EQ(router.Admit(request).kind, -1);
  request = {.method = "PUT", .path = "/snapshots/x"};
  EXPECT_EQ(router.Admit(request).kind, -1) << "methods are anybody's to make up";
}

TEST(UserRoutes, CallsThatMayReadTheKeyOfSecretsHoldNoThreadOfQuickOnes) {
  int calls = 0;
  for (const Route& route : UserRoutes(nullptr)) {
    if (!absl::StartsWith(route.pattern, "/v1/secret")) continue;
    ++calls;
    EXPECT_EQ(route.pace, http::Pace::kSlow) << route.method << " " << route.pattern;
    EXPECT_EQ(route.group, "secrets");
  }
  EXPECT_EQ(calls, 4);
}

TEST_F(RouterTest, WithoutSuchAllocationsTheOldTokenOpensNothing) {
  const Router router(Routes(), {.launcher_key = kKey, .former_launcher = kFormer});
  EXPECT_FALSE(Admits(router, "/allocations/before.1/go", kFormer));
  EXPECT_FALSE(Admits(router, "/snapshots/x", kFormer));
}

}  // namespace
}  // namespace tutti::api
