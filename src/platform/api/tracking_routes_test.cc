#include "platform/api/tracking_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/file.h"
#include "platform/api/callers_for_tests.h"

namespace tutti::api {
namespace {

class TrackingRoutesTest : public ::testing::Test {
 protected:
  http::Admission Admit(const char* method, const char* path, const std::string& token) const {
    http::Request request{.method = method, .path = path};
    request.headers["authorization"] = "Bearer " + token;
    return router_.Admit(request);
  }

  base::TemporaryDirectory folder_;
  base::SystemClock clock_;
  std::unique_ptr<tracking::TrackingStore> store_ =
      *tracking::TrackingStore::Open(folder_.path() / "t.db", &clock_);
  std::unique_ptr<tracking::ArtifactStore> artifacts_ =
      *tracking::ArtifactStore::Open(folder_.path() / "t", nullptr);
  tracking::TrackingServer server_{store_.get(), artifacts_.get()};
  const Router router_{TrackingRoutes(&server_),
                       {.user = kUserToken, .launcher_key = kLauncherKey}};
};

TEST_F(TrackingRoutesTest, AreTheUsersAndTheJobsAlone) {
  for (const Route& route : router_.routes()) EXPECT_EQ(route.access, Access::kTracking);
  const auto refused = Admit("POST", "/api/2.0/mlflow/runs/create", "wrong");
  ASSERT_TRUE(refused.refusal.has_value());
  EXPECT_EQ(refused.refusal->status, 401);
}

TEST_F(TrackingRoutesTest, AnswerUnderEachOfMlflowsPrefixes) {
  for (const char* path : {"/api/2.0/mlflow/runs/get", "/ajax-api/2.0/mlflow/experiments/get",
                           "/api/2.0/preview/mlflow/runs/get", "/api/3.0/mlflow/traces/search"}) {
    const auto admitted = Admit("GET", path, kUserToken);
    EXPECT_FALSE(admitted.refusal.has_value()) << path;
    EXPECT_EQ(admitted.pace, http::Pace::kQuick) << path;
  }
}

TEST_F(TrackingRoutesTest, WhatTouchesFoldersHasFewThreads) {
  const std::pair<const char*, const char*> calls[] = {
      {"GET", "/api/2.0/mlflow/artifacts/list"},
      {"GET", "/api/2.0/mlflow/logged-models/m-1/artifacts/directories"},
      {"GET", "/api/2.0/mlflow-artifacts/artifacts"},
      {"GET", "/api/2.0/mlflow-artifacts/artifacts/0/r/a"},
      {"PUT", "/api/2.0/mlflow-artifacts/artifacts/a"},
      {"DELETE", "/api/2.0/mlflow-artifacts/artifacts/0/r/a"}};
  for (const auto& [method, path] : calls) {
    const auto admitted = Admit(method, path, kUserToken);
    EXPECT_FALSE(admitted.refusal.has_value()) << path;
    EXPECT_NE(admitted.pace, http::Pace::kQuick) << path;
    EXPECT_EQ(admitted.group, "mlflow artifacts") << path;
  }
}

TEST_F(TrackingRoutesTest, UploadsOfOneRunLeaveThreadsToOthers) {
  const auto group = [&](const std::string& path) {
    const auto admitted =
        Admit("PUT", ("/api/2.0/mlflow-artifacts/artifacts/" + path).c_str(), kUserToken);
    EXPECT_EQ(admitted.pace, http::Pace::kReceives) << path;
    return admitted.group;
  };
  EXPECT_EQ(group("0/r1/artifacts/a"), group("0/r1/artifacts/b/c"));
  EXPECT_NE(group("0/r1/artifacts/a"), group("0/r2/artifacts/a"));
  EXPECT_NE(group("0/models/m-1/artifacts/a"), group("0/models/m-2/artifacts/a"));
}

TEST_F(TrackingRoutesTest, SearchesLeaveThreadsToOthers) {
  const std::pair<const char*, const char*> calls[] = {
      {"POST", "runs/search"},
      {"POST", "experiments/search"},
      {"POST", "logged-models/search"},
      {"GET", "metrics/get-history"},
      {"GET", "metrics/get-history-bulk-interval"}};
  for (const auto& [method, call] : calls) {
    const std::string path = std::string("/api/2.0/mlflow/") + call;
    const auto admitted = Admit(method, path.c_str(), kUserToken);
    EXPECT_EQ(admitted.pace, http::Pace::kSlow) << path;
    EXPECT_EQ(admitted.group, "mlflow searches") << path;
  }
  EXPECT_EQ(Admit("POST", "/api/2.0/mlflow/runs/log-batch", kUserToken).pace, http::Pace::kQuick);
}

}  // namespace
}  // namespace tutti::api
