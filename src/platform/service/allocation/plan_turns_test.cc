#include "platform/service/allocation/plan_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/deadline.h"
#include "base/test_patience.h"
#include "base/threads/work_queues.h"

namespace tutti::service {
namespace {

constexpr size_t kThreads = 32;  // as many as the service has

// /far is on a server that is away; each user's home, and /near, on one that answers.
std::vector<base::Mount> NearAndFarMounts() {
  std::vector<base::Mount> mounts = {{"/", "ext4"}, {"/far", "nfs"}, {"/near", "nfs"}};
  for (int user = 0; user < 9; ++user) mounts.push_back({absl::StrCat("/home/", user), "nfs"});
  return mounts;
}

class PlanTurnsTest : public ::testing::Test {
 protected:
  ~PlanTurnsTest() override {
    ComesBack();
    work_.Join();
  }
  void ComesBack() {
    if (!answers_.HasBeenNotified()) answers_.Notify();
  }
  static PlanPlace Place(const std::vector<std::string>& inputs) {
    return PlaceOfPlan("p", inputs, "/jobs/", NearAndFarMounts());
  }
  // Reads from the server that is away, and from that user's home.
  void ReadFromAfar(int user, int step) {
    const std::string file = absl::StrCat("/", step);
    turns_.Do(Place({absl::StrCat("/far", file), absl::StrCat("/home/", user, file)}), [this] {
      ++begun_;
      answers_.WaitForNotification();
      ++ended_;
    });
  }
  void ReadByAll() {
    for (int user = 0; user < 9; ++user) {
      for (int step = 0; step < 40; ++step) ReadFromAfar(user, step);
    }
  }
  bool Does(const std::vector<std::string>& inputs) {
    const auto done = std::make_shared<absl::Notification>();
    turns_.Do(Place(inputs), [done] { done->Notify(); });
    return done->WaitForNotificationWithTimeout(base::Patient(absl::Seconds(20)));
  }

  absl::Notification answers_;
  std::atomic<int> begun_ = 0, ended_ = 0;
  base::WorkQueues work_{kThreads};
  PlanTurns turns_{&work_};
};

TEST_F(PlanTurnsTest, AServerThatIsAwayHoldsNoPlanThatDoesNotReadFromItWhateverIsReadBeside) {
  work_.Start();
  ReadByAll();
  EXPECT_TRUE(Does({"/data/x"}));
  EXPECT_TRUE(Does({"/near/x"}));
  for (int user = 0; user < 9; ++user) EXPECT_TRUE(Does({absl::StrCat("/home/", user, "/x")}));
  EXPECT_LE(begun_, kPlanQueues);
}

TEST_F(PlanTurnsTest, AllAreDoneOnceItIsBack) {
  work_.Start();
  ReadByAll();
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return begun_ == kPlanQueues - 1; }));
  ComesBack();
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return ended_ == 9 * 40; }));
}

TEST_F(PlanTurnsTest, StepsWithTheSameInputsTakeOneThread) {
  work_.Start();
  for (int i = 0; i < 20; ++i) ReadFromAfar(0, 0);
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return begun_ == 1; }));
  EXPECT_TRUE(Does({"/home/0/x"}));
  EXPECT_EQ(begun_, 1);
  ComesBack();
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return ended_ == 20; }));
}

TEST_F(PlanTurnsTest, OneThatThrowsGivesItsTurnBack) {
  work_.Start();
  for (int i = 0; i < 40; ++i) {
    turns_.Do(Place({absl::StrCat("/near/", i)}), [] { throw std::runtime_error("no memory"); });
  }
  EXPECT_TRUE(Does({"/near/x"}));
}

TEST_F(PlanTurnsTest, OneThatReadsFromTwoComesThoughOthersAreAlwaysThere) {
  work_.Start();
  absl::Notification others, later, came;
  const auto read_near = [&](int begin, absl::Notification& until) {
    for (int i = begin; i < begin + 40; ++i) {
      turns_.Do(Place({absl::StrCat("/near/", i)}), [&] { until.WaitForNotification(); });
    }
  };
  read_near(0, others);
  turns_.Do(Place({"/near/x", "/home/0/x"}), [&] { came.Notify(); });
  read_near(40, later);
  others.Notify();
  EXPECT_TRUE(came.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(20))));
  later.Notify();
  EXPECT_TRUE(Does({"/near/x"}));
  work_.Stop(base::Deadline::After(base::Patient(absl::Seconds(20))));
}

// Plans of all queues wait for each mount: as one ends, another is taken.
TEST_F(PlanTurnsTest, OneThatReadsFromTwoComesThoughAnotherHangsAtEach) {
  work_.Start();
  const std::vector<std::string> mounts = {"/near", "/home/0"};
  for (const std::string& mount : mounts) {
    turns_.Do(Place({mount + "/h", "/far/h"}), [&] { answers_.WaitForNotification(); });
  }
  absl::Notification first_end, all_end, came;
  const auto read = [&](int begin, int end, absl::Notification& until) {
    for (const std::string& mount : mounts) {
      std::map<std::string, std::string> of_queues;
      for (int i = 0; of_queues.size() < kPlanQueues; ++i) {
        const std::string file = absl::StrCat(mount, "/", i);
        of_queues.emplace(Place({file}).queue, file);
      }
      for (int i = begin; i < end; ++i) {
        const auto file = std::next(of_queues.begin(), i % kPlanQueues)->second;
        turns_.Do(Place({file}), [&] { until.WaitForNotification(); });
      }
    }
  };
  read(0, kPlanQueues - 1, first_end);
  turns_.Do(Place({"/near/x", "/home/0/x"}), [&] { came.Notify(); });
  read(kPlanQueues - 1, 3 * kPlanQueues, all_end);
  first_end.Notify();
  EXPECT_TRUE(came.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(20))));
  all_end.Notify();
  ComesBack();
  work_.Stop(base::Deadline::After(base::Patient(absl::Seconds(20))));
}

TEST_F(PlanTurnsTest, ThoseBehindOneThatWaitsForAServerThatIsAwayComeAllTheSame) {
  work_.Start();
  ReadByAll();
  std::atomic<int> read = 0;
  for (int i = 0; i < 100; ++i) {
    turns_.Do(Place({absl::StrCat("/home/0/", i)}), [&] { ++read; });
  }
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return read == 100; }));
  EXPECT_EQ(ended_, 0);
}

// One by one each would cost a look at all the others, minutes in all.
TEST_F(PlanTurnsTest, ManyThatWaitCostNoMoreThanFew) {
  work_.Start();
  constexpr int kPlans = 100'000;
  std::vector<PlanPlace> places;
  for (int i = 0; i < 40; ++i) {
    places.push_back(Place({absl::StrCat("/far/", i), absl::StrCat("/home/", i % 9, "/x")}));
  }
  const absl::Duration began = base::SteadyNow();
  for (int i = 0; i < kPlans; ++i) {
    turns_.Do(places[i % places.size()], [this] {
      answers_.WaitForNotification();
      ++ended_;
    });
  }
  EXPECT_LT(base::SteadyNow() - began, base::Patient(absl::Seconds(20)));
  ComesBack();
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(60), [&] { return ended_ == kPlans; }));
}

// Tests go step by step so.
TEST_F(PlanTurnsTest, WithoutThreadsEachIsDoneAtOnce) {
  ComesBack();
  ReadByAll();
  EXPECT_EQ(ended_, 9 * 40);
}

}  // namespace
}  // namespace tutti::service
