#include "platform/api/router.h"

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
