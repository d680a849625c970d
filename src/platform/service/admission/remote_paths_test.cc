#include "platform/service/admission/remote_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/deadline.h"
#include "base/test_patience.h"

namespace tutti::service {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

class RemotePathsTest : public ::testing::Test {
 protected:
  RemotePathsTest() { probes_.Start(); }
  ~RemotePathsTest() override {
    if (!answers_->HasBeenNotified()) answers_->Notify();
  }

  absl::StatusOr<RemotePaths::Visit> Begin(const std::string& path) {
    return paths_.Begin({path}, {{"/", "ext4"}, {"/far", "nfs"}, {"/other", "nfs"}});
  }

  // Has the mount hang, as a question before has.
  void Hang(const std::string& mount) {
    probes_.Do(mount, [answers = answers_] { answers->WaitForNotification(); });
  }

  const std::shared_ptr<absl::Notification> answers_ = std::make_shared<absl::Notification>();
  base::WorkQueues probes_{8};
  RemotePaths paths_{probes_};
};

TEST_F(RemotePathsTest, WhoseMountDoesNotAnswerIsRefusedAndNobodyElse) {
  Hang("/far");
  EXPECT_THAT(Begin("/far/data").status().ToString(), HasSubstr("/far, where the job has files"));
  EXPECT_TRUE(absl::IsUnavailable(Begin("/far").status()));
  EXPECT_TRUE(Begin("/other/data").ok());
  EXPECT_TRUE(Begin("/etc/passwd").ok());
  answers_->Notify();
  const auto deadline = base::Deadline::After(base::Patient(absl::Seconds(20)));
  while (!Begin("/far/data").ok() && !deadline.Expired()) std::this_thread::yield();
  EXPECT_TRUE(Begin("/far/data").ok());
}

TEST_F(RemotePathsTest, AFewLookAtAMountAtATime) {
  std::vector<RemotePaths::Visit> visits;
  for (int i = 0; i < RemotePaths::kMostVisits; ++i) visits.push_back(*Begin("/far/data"));
  EXPECT_TRUE(absl::IsUnavailable(Begin("/far/data").status()));
  EXPECT_TRUE(Begin("/other/data").ok());
  EXPECT_TRUE(Begin("/etc/passwd").ok());
  visits.pop_back();
  EXPECT_TRUE(Begin("/far/data").ok());
}

TEST_F(RemotePathsTest, LooksWhereTheJobAndThoseBelowItHavePaths) {
  spec::JobSpec job;
  job.inputs["a"].path = "/data";
  job.inputs["b"].path = "https://example.com/data";
  job.steps.emplace_back();
  job.steps.back().job.code = "/code";
  job.steps.back().job.environment_variables["PATH"] = "/opt/bin:$PATH";
  const std::set<std::string> paths = PathsOf(job);
  EXPECT_THAT(paths, IsSupersetOf({"/data", "/code", "/opt/bin"}));
  EXPECT_FALSE(paths.contains("https://example.com/data"));
}

}  // namespace
}  // namespace tutti::service
