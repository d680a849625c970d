// Tests what followers of a job are told.
// Covers: follower.cc, allocation/job_output.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "base/test_patience.h"
#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(ServiceTest, TellsFollowersEverythingInOrderAndTheEndLast) {
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  const std::vector<std::string> told = world_.FollowerOutput("j");
  ASSERT_EQ(told.size(), 13u);
  EXPECT_EQ(told.front(), "=Queued");
  EXPECT_EQ(told.back(), "=Completed");
  std::vector<std::string> lines;
  for (const std::string& item : told) {
    if (item[0] == '0') lines.push_back(item);
  }
  EXPECT_THAT(lines, ElementsAre("0:rank 0 begins", "0:rank 0 ends", "0:rank 0 last"));
}

TEST_F(ServiceTest, TellsBackwardsInPagesWhatFollowersAreTold) {
  ASSERT_TRUE(world_.Submit().ok());
  EXPECT_EQ(service().LinesBefore("j", "", 10)->before, "") << "there is no output yet";
  ASSERT_TRUE(world_.StepUntilOver("j"));
  const std::vector<std::string> told = world_.FollowerOutput("j");
  for (const int size : {1, 2, 100}) {
    std::vector<std::string> all;
    std::string before;
    do {
      const auto page = service().LinesBefore("j", before, size);
      ASSERT_TRUE(page.ok()) << page.status();
      std::vector<std::string> items;
      for (const FollowItem& item : page->items) {
        items.push_back(item.event ? absl::StrCat("=", Name(item.event->state))
                                   : absl::StrCat(item.rank, ":", item.text));
      }
      all.insert(all.begin(), items.begin(), items.end());
      before = page->before;
    } while (!before.empty());
    EXPECT_EQ(all, told) << size;
  }
  const std::string middle = service().Follow("j", "", Now(), {})->items[6].cursor;
  const std::vector<std::string> rest = world_.FollowerOutput("j", middle);
  EXPECT_EQ(service().LinesBefore("j", middle, 100)->items.size() + rest.size(), told.size());
}

TEST_F(ServiceTest, RunsByItselfAndWakesFollowers) {
  service().Run();
  std::atomic<bool> over = false;
  std::thread launchers([&] {
    while (!over) {
      world_.launchers().Step(service(), world_.clock().Now());
      std::this_thread::yield();
    }
  });
  ASSERT_TRUE(world_.Submit().ok());
  std::vector<std::thread> followers;
  std::vector<std::vector<std::string>> told(8);
  for (auto& mine : told) {
    followers.emplace_back([&] {
      std::string cursor;
      const auto deadline = base::Deadline::After(base::Patient(absl::Seconds(30)));
      while (!deadline.Expired()) {
        auto result = service().Follow("j", cursor, deadline, {});
        ASSERT_TRUE(result.ok()) << result.status();
        for (const FollowItem& item : result->items) {
          mine.push_back(item.event ? std::string(Name(item.event->state)) : item.text);
          cursor = item.cursor;
        }
        if (result->ended) return;
      }
    });
  }
  for (std::thread& follower : followers) follower.join();
  over = true;
  launchers.join();
  for (const auto& mine : told) {
    ASSERT_EQ(mine.size(), 13u);
    EXPECT_EQ(mine.back(), "Completed");
  }
}

TEST_F(ServiceTest, EndsEveryWaitWhenItStops) {
  world_.launchers().silent = true;
  ASSERT_TRUE(world_.Submit().ok());
  world_.Step();
  const std::string cursor = service().Follow("j", "", Now(), {})->items.back().cursor;
  std::thread follower([&] {
    const auto result =
        service().Follow("j", cursor, base::Deadline::After(base::Patient(absl::Seconds(60))), {});
    EXPECT_TRUE(result.ok());
  });
  service().Stop();
  follower.join();
}

TEST_F(ServiceTest, RefusesCursorsThatItNeverGave) {
  ASSERT_TRUE(world_.Submit().ok());
  for (const char* cursor :
       {"x", "1", "1-2", "1-0-0-0", "-1-0-0", "01-0-0", " 1-0-0", "99999999999999999999-0-0"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(service().Follow("j", cursor, Now(), {}).status()))
        << cursor;
  }
  // A cursor may name an event that a loss of power took; the next event has a larger number.
  EXPECT_THAT(service().Follow("j", "99-0-0", Now(), {})->items, IsEmpty());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_TRUE(absl::IsInvalidArgument(service().Follow("j", "1-77-0", Now(), {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(service().LinesBefore("j", "1-77-0", 1).status()));
}

TEST_F(ServiceTest, LeavesOutWhatRanksReportForAFollowerThatDoesNotShowIt) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", store::JobState::kRunning));
  const std::string id = world_.engine().Allocations().at(0);
  std::string reports = "{\"event\": \"evaluation\", \"top1\": 1}\n";
  while (reports.size() < size_t{3} << 20) {
    absl::StrAppend(&reports, R"({"step": 1, "loss": 0.5})", "\n",
                    R"({"event": "step", "step": 1, "loss": 0.5})", "\n",
                    R"({"event": "train", "step": 1, "loss": 0.5})", "\n");
  }
  reports += "{\"event\": \"step\", \"step\": 2}\n{\"event\": \"result\", \"top1\": 1}\n";
  ASSERT_TRUE(service().AppendOutput(id, 0, 0, LogStream::kMetrics, 0, reports).ok());
  ASSERT_TRUE(service().AppendOutput(id, 1, 1, LogStream::kMlflow, 0, "{\"loss\": 1}\n").ok());
  std::vector<std::string> told;
  std::string cursor;
  for (bool more = true; more;) {
    const auto result = service().Follow("j", cursor, Now(), {.reports = false});
    ASSERT_TRUE(result.ok()) << result.status();
    for (const FollowItem& item : result->items) {
      if (!item.event && item.stream != LogStream::kStdout) told.push_back(item.text);
    }
    EXPECT_NE(result->cursor, cursor);
    cursor = result->cursor;
    more = result->more;
  }
  ASSERT_GE(told.size(), 3u);
  EXPECT_LE(told.size(), 6u) << "one step of each MiB";
  EXPECT_EQ(told.front(), R"({"event": "evaluation", "top1": 1})");
  EXPECT_EQ(told.end()[-2], R"({"event": "step", "step": 2})") << "how far the training is";
  EXPECT_EQ(told.back(), R"({"event": "result", "top1": 1})");
  EXPECT_THAT(service().Follow("j", cursor, Now(), {})->items, IsEmpty()) << "all was looked at";
}

// A follower that reconnects at any item, also across restarts of the service, is told everything
// once and in one order.
TEST_F(ServiceTest, TellsEachFollowerEverythingOnceWhereverItReconnects) {
  ASSERT_TRUE(world_.Submit().ok());
  std::mt19937 random(3);
  struct Follower {
    std::string cursor;
    std::vector<std::string> told;
    bool ended = false;
  };
  std::vector<Follower> followers(6);
  const auto follow = [&](Follower& follower) {
    const auto result = service().Follow("j", follower.cursor, Now(), {});
    ASSERT_TRUE(result.ok()) << result.status();
    // The connection breaks after some of the items.
    const size_t seen = result->items.empty() ? 0 : random() % (result->items.size() + 1);
    for (size_t i = 0; i < seen; ++i) {
      const FollowItem& item = result->items[i];
      follower.told.push_back(item.event ? std::string(Name(item.event->state))
                                         : absl::StrCat(item.rank, item.text));
      follower.cursor = item.cursor;
    }
    follower.ended = result->ended && seen == result->items.size();
  };
  bool all_ended = false;
  for (int i = 0; i < 2000 && !all_ended; ++i) {
    world_.Step();
    if (random() % 4 == 0) world_.Open();
    follow(followers[random() % followers.size()]);
    all_ended = std::all_of(followers.begin(), followers.end(), [](auto& f) { return f.ended; });
  }
  ASSERT_TRUE(all_ended);
  for (const Follower& follower : followers) {
    EXPECT_EQ(follower.told, followers[0].told);
    EXPECT_EQ(follower.told.size(), 13u);
  }
}

}  // namespace
}  // namespace tutti::service
