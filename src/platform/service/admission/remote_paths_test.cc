#include "platform/service/admission/remote_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/deadline.h"
#include "base/test_patience.h"

namespace tutti::service {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

class RemotePathsTest : public ::testing::Test {
 protected:
  RemotePathsTest() {
    for (base::WorkQueues* const work : {&probes_, &canary_, &looks_}) work->Start();
    folders_.Run();
  }
  ~RemotePathsTest() override {
    folders_.Stop();
    Answer();
    for (base::WorkQueues* const work : {&probes_, &canary_, &looks_}) work->Join();
  }

  absl::StatusOr<RemotePaths::Visit> Begin(const std::string& path) {
    return paths_.Begin({path}, *mounts_);
  }
  // Has all that asks a mount wait.
  void Hang(const std::string& mount) {
    absl::MutexLock lock(&mutex_);
    hung_ = mount;
  }
  void Answer() { Hang(""); }
  absl::Status Ask(const std::string& mount) {
    absl::MutexLock lock(&mutex_);
    const auto answers = [&] { return hung_ != mount; };
    mutex_.Await(absl::Condition(&answers));
    return absl::OkStatus();
  }

  const std::shared_ptr<const std::vector<base::Mount>> mounts_ =
      std::make_shared<const std::vector<base::Mount>>(std::vector<base::Mount>{
          {"/", "ext4", "", 1}, {"/far", "nfs", "", 2}, {"/other", "nfs", "", 3}});
  absl::Mutex mutex_;
  std::string hung_ ABSL_GUARDED_BY(mutex_);
  base::SystemClock clock_;
  base::WorkQueues probes_{8}, canary_{1}, looks_{8};
  FolderWatch folders_{{.mounts = [this] { return mounts_; },
                        .ask = [this](const std::string& mount) { return Ask(mount); },
                        .ask_own = {}},
                       [] { return std::vector<FolderWatch::Folder>(); },
                       probes_,
                       canary_,
                       &clock_};
  RemotePaths paths_{folders_, looks_};
};

TEST_F(RemotePathsTest, WhoseMountDoesNotAnswerIsRefusedAndNobodyElse) {
  Hang("/far");
  EXPECT_THAT(Begin("/far/data").status().ToString(), HasSubstr("/far, where the job has files"));
  EXPECT_TRUE(absl::IsUnavailable(Begin("/far").status()));
  EXPECT_TRUE(Begin("/other/data").ok());
  EXPECT_TRUE(Begin("/etc/passwd").ok());
  Answer();
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
