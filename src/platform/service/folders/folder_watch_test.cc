#include "platform/service/folders/folder_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/test_patience.h"

namespace tutti::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Mounts = std::vector<base::Mount>;

// File systems that answer, hang, or give up, as they are told.
class FileServers {
 public:
  void Set(const std::string& point, bool hangs, absl::Status answer = absl::OkStatus()) {
    absl::MutexLock lock(&mutex_);
    Server& server = servers_[point];
    server.hangs = hangs;
    server.answer = std::move(answer);
  }
  // Ends the question that hangs there now, and no other.
  void AnswerOnce(const std::string& point, absl::Status answer) {
    absl::MutexLock lock(&mutex_);
    servers_[point].once = true;
    servers_[point].answer = std::move(answer);
  }
  absl::Status Ask(const std::string& point) {
    absl::MutexLock lock(&mutex_);
    Server& server = servers_[point];
    ++server.asked;
    const auto goes_on = [&server] { return !server.hangs || server.once; };
    mutex_.Await(absl::Condition(&goes_on));
    server.once = false;
    return server.answer;
  }
  int asked(const std::string& point) {
    absl::MutexLock lock(&mutex_);
    return servers_[point].asked;
  }

 private:
  struct Server {
    bool hangs = false, once = false;
    absl::Status answer;
    int asked = 0;
  };
  absl::Mutex mutex_;
  std::map<std::string, Server> servers_;
};

class FolderWatchTest : public ::testing::Test {
 protected:
  FolderWatchTest() {
    Mount({{"/", "ext4", "", 1}, {"/home/jobs", "nfs", "", 2}, {"/far", "nfs", "", 3}});
    probes_.Start();
    canary_.Start();
  }
  ~FolderWatchTest() override {
    watch_.Stop();
    for (const char* const point : {"/home/jobs", "/far", "canary"}) servers_.Set(point, false);
    probes_.Join();
    canary_.Join();
  }

  void Mount(Mounts mounts) {
    absl::MutexLock lock(&mutex_);
    mounts_ = std::make_shared<const Mounts>(std::move(mounts));
  }
  FolderQuestions Questions() {
    return {.mounts =
                [this] {
                  absl::MutexLock lock(&mutex_);
                  return mounts_;
                },
            .ask = [this](const std::string& point) { return servers_.Ask(point); },
            .ask_own =
                [this] {
                  static_cast<void>(servers_.Ask("canary"));
                  ++canaries_;
                }};
  }
  // Steps until the canary has come back so often, which is how many rounds may count.
  void Rounds(FolderWatch& watch, int count) {
    const int until = canaries_ + count;
    base::AwaitPatiently(absl::Seconds(20), [&] {
      watch.Step();
      return canaries_ >= until;
    });
  }
  // Has it asked, and waits until its thread hangs there.
  void Hang(const std::string& point) {
    servers_.Set(point, true);
    const int before = servers_.asked(point);
    while (!watch_.Step()) clock_.Advance(absl::Seconds(1));
    base::AwaitPatiently(absl::Seconds(20), [&] { return servers_.asked(point) > before; });
  }
  void AwaitAway(const std::string& path) {
    ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
      watch_.Step();
      return IsAway(path);
    }));
  }
  bool Answers(const std::string& path) {
    return base::AwaitPatiently(absl::Seconds(20), [&] { return !IsAway(path); });
  }
  bool IsAway(const std::string& path) { return !watch_.Check(path).ok(); }

  base::ManualClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  FileServers servers_;
  std::atomic<int> canaries_ = 0;
  absl::Mutex mutex_;
  std::shared_ptr<const Mounts> mounts_ ABSL_GUARDED_BY(mutex_);
  base::WorkQueues probes_{8}, canary_{1};
  FolderWatch watch_{
      Questions(),
      [] {
        return std::vector<FolderWatch::Folder>{{"jobs", "/home/jobs"}, {"data", "/home/data"}};
      },
      probes_, canary_, &clock_};
};

TEST_F(FolderWatchTest, WhatDoesNotAnswerIsAwaySinceItWasAskedAndWhatAnswersIsNot) {
  const int before = canaries_;
  Hang("/home/jobs");
  const absl::Time asked = clock_.Now();
  Rounds(watch_, FolderWatch::kRounds / 2);
  EXPECT_FALSE(IsAway("/home/jobs/a")) << "it may be slow";
  AwaitAway("/home/jobs/a/outputs");
  EXPECT_GE(canaries_ - before, FolderWatch::kRounds);
  const absl::Status known = watch_.Check("/home/jobs/a");
  EXPECT_TRUE(absl::IsUnavailable(known));
  EXPECT_THAT(known.message(), HasSubstr("/home/jobs has not answered since 2027-01-15T"));
  EXPECT_FALSE(IsAway("/home/data/x"));
  EXPECT_FALSE(IsAway("/far/x"));
  ASSERT_EQ(watch_.Away().size(), 1u);
  EXPECT_THAT(watch_.Away()[0].names, ElementsAre("jobs"));
  EXPECT_EQ(watch_.Away()[0].mount, "/home/jobs");
  EXPECT_EQ(watch_.Away()[0].since, asked);
  EXPECT_THAT(ShownAway(watch_.Away()[0]), HasSubstr("/home/jobs (jobs) has not answered since"));
}

TEST_F(FolderWatchTest, WhatIsAwayIsUsedAgainAsSoonAsItAnswers) {
  Hang("/home/jobs");
  AwaitAway("/home/jobs/a");
  servers_.Set("/home/jobs", false);
  EXPECT_TRUE(Answers("/home/jobs/a")) << "without another round";
  EXPECT_THAT(watch_.Away(), IsEmpty());
}

TEST_F(FolderWatchTest, WhatIsSlowIsNeverAway) {
  for (int i = 0; i < 5; ++i) {
    Hang("/home/jobs");
    Rounds(watch_, FolderWatch::kRounds - 4);
    EXPECT_FALSE(IsAway("/home/jobs/a"));
    servers_.Set("/home/jobs", false);
    ASSERT_TRUE(watch_.Await("/home/jobs/a").ok()) << "it is answered";
  }
}

TEST_F(FolderWatchTest, AMachineWhoseThreadsComeLateTakesNothingForAway) {
  Hang("/home/jobs");
  servers_.Set("canary", true);
  for (int i = 0; i < 5 * FolderWatch::kRounds; ++i) {
    clock_.Advance(absl::Minutes(1));  // however long that takes
    watch_.Step();
  }
  EXPECT_FALSE(IsAway("/home/jobs/a"));
  servers_.Set("canary", false);
  AwaitAway("/home/jobs/a");
}

TEST_F(FolderWatchTest, AThreadThatHasNotBegunToAskSaysNothing) {
  base::WorkQueues busy(1), canary(1);
  busy.Start();
  canary.Start();
  FolderWatch watch(
      Questions(), [] { return std::vector<FolderWatch::Folder>(); }, busy, canary, &clock_);
  servers_.Set("other", true);
  busy.Do("other", [this] { static_cast<void>(servers_.Ask("other")); });
  servers_.Set("/far", true);
  EXPECT_TRUE(watch.Check("/far/x").ok());
  Rounds(watch, 3 * FolderWatch::kRounds);
  EXPECT_TRUE(watch.Check("/far/x").ok());
  servers_.Set("/far", false);
  servers_.Set("other", false);
  busy.Join();
  canary.Join();
}

TEST_F(FolderWatchTest, AnErrorIsAnAnswerButForOneThatComesAfterTheLimit) {
  servers_.Set("/home/jobs", false, absl::InternalError("stale"));
  EXPECT_TRUE(watch_.Await("/home/jobs/a").ok()) << "calls are told of it by themselves";
  Hang("/home/jobs");
  AwaitAway("/home/jobs/a");
  const absl::Time since = watch_.Away().at(0).since;
  const int asked = servers_.asked("/home/jobs");
  servers_.AnswerOnce("/home/jobs", absl::DeadlineExceededError("the mount has given up"));
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    clock_.Advance(absl::Seconds(1));
    watch_.Step();
    return servers_.asked("/home/jobs") > asked;
  })) << "it is asked anew";
  EXPECT_TRUE(IsAway("/home/jobs/a"));
  EXPECT_EQ(watch_.Away().at(0).since, since);
  servers_.Set("/home/jobs", false);
  EXPECT_TRUE(Answers("/home/jobs/a"));
}

TEST_F(FolderWatchTest, AMountThatIsMadeAnewIsAskedAnewThoughTheFormerHangs) {
  Hang("/home/jobs");
  AwaitAway("/home/jobs/a");
  Mount({{"/", "ext4", "", 1}, {"/home/jobs", "nfs", "", 9}});
  EXPECT_FALSE(IsAway("/home/jobs/a"));
  const int asked = servers_.asked("/home/jobs");
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    watch_.Step();
    return servers_.asked("/home/jobs") > asked;
  })) << "by another thread";
  Mount({{"/", "ext4", "", 1}});
  watch_.Step();
  EXPECT_THAT(watch_.Away(), IsEmpty());
  EXPECT_TRUE(watch_.Await("/home/jobs/a").ok()) << "it lies on this machine's own disk now";
}

TEST_F(FolderWatchTest, WhatCallsNeedIsAskedForAWhileAndThenForgotten) {
  watch_.Step();
  EXPECT_EQ(servers_.asked("/far"), 0);
  EXPECT_TRUE(watch_.Check("/far/x").ok());
  Hang("/far");
  servers_.Set("/far", false);
  ASSERT_TRUE(watch_.Await("/far/x").ok());
  clock_.Advance(absl::Minutes(2));
  watch_.Step();
  const int asked = servers_.asked("/far");
  for (int i = 0; i < 20; ++i) {
    clock_.Advance(absl::Seconds(1));
    watch_.Step();
  }
  EXPECT_EQ(servers_.asked("/far"), asked);
}

// With its own thread.
TEST_F(FolderWatchTest, WhoWaitsIsToldTogetherOnceItIsAway) {
  watch_.Run();
  EXPECT_TRUE(watch_.Await("/far/x").ok());
  EXPECT_TRUE(watch_.Await("/etc").ok());
  servers_.Set("/far", true);
  std::vector<std::thread> callers;
  std::atomic<int> refused = 0;
  const absl::Duration began = base::SteadyNow();
  for (int i = 0; i < 16; ++i) {
    callers.emplace_back([&] { refused += absl::IsUnavailable(watch_.Await("/far/x")) ? 1 : 0; });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(refused, 16);
  EXPECT_LT(base::SteadyNow() - began, base::Patient(absl::Seconds(20)));
  EXPECT_EQ(servers_.asked("/far"), 2) << "one question for all of them";
  EXPECT_TRUE(IsAway("/far/x"));
  EXPECT_TRUE(absl::IsUnavailable(watch_.Await("/far/x"))) << "at once";
  EXPECT_TRUE(watch_.Await("/home/jobs").ok());
  servers_.Set("/far", false);
  EXPECT_TRUE(Answers("/far/x"));
}

// Processors are taken from it and from the file server alike.
TEST_F(FolderWatchTest, AFileServerThatAnswersUnderLoadIsNotAway) {
  std::atomic<bool> over = false;
  std::vector<std::thread> load;
  for (unsigned i = 0; i < 8 * std::thread::hardware_concurrency(); ++i) {
    load.emplace_back([&over] {
      while (!over) {
      }
    });
  }
  watch_.Run();
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(watch_.Await("/far/x").ok());
    EXPECT_THAT(watch_.Away(), IsEmpty());
  }
  over = true;
  for (std::thread& thread : load) thread.join();
}

TEST(FolderWatchOfThisMachine, AnswersAndAsksNobodyOfItsOwnDisks) {
  base::WorkQueues probes(1), canary(1);
  probes.Start();
  canary.Start();
  base::SystemClock clock;
  FolderWatch watch(
      {},
      [] {
        return std::vector<FolderWatch::Folder>{{"proc", "/proc"}};
      },
      probes, canary, &clock);
  EXPECT_TRUE(watch.Await("/proc/self").ok());
  EXPECT_TRUE(watch.Check("/proc/self").ok());
  EXPECT_FALSE(watch.Step());
  EXPECT_THAT(watch.Away(), IsEmpty());
}

}  // namespace
}  // namespace tutti::service
