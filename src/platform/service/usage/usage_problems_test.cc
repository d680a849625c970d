#include "platform/service/usage/usage_problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace tutti::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr int kSeconds = 300;

// Four ranks on n1, whose samples `change` makes from a quiet one; `second` goes to kSeconds.
NodeHistory HistoryOf(const std::function<void(int second, spec::UsageSample& sample)>& change) {
  NodeHistory history(0, 4);
  for (int second = 0; second <= kSeconds; ++second) {
    spec::UsageSample sample{.time = kNow - absl::Seconds(kSeconds - second)};
    sample.memory = 1e9;
    sample.memory_left = 1e10;
    for (int rank = 0; rank < 4; ++rank) {
      sample.ranks.push_back({.rank = rank, .cpu = 1, .memory = 2.5e8, .cpu_wait = 0.01F});
    }
    change(second, sample);
    history.Add(sample);
  }
  return history;
}

std::vector<std::string> ProblemsOf(const NodeHistory& history, absl::Time now = kNow) {
  UsageProblems problems(now);
  problems.Add("n1", history);
  return problems.Lines();
}

void Grow(int second, spec::UsageSample& sample) {
  const auto grown = 1e7F * static_cast<float>(second);
  sample.memory += grown;
  sample.memory_left = 4e9F - grown;
  sample.ranks[2].memory += grown;
}

TEST(UsageProblemsTest, AreNoneOfAJobThatIsWell) {
  EXPECT_THAT(ProblemsOf(HistoryOf([](int, auto&) {})), IsEmpty());
}

TEST(UsageProblemsTest, SayThatMemoryWillNotSufficeAndWhoTakesIt) {
  EXPECT_THAT(
      ProblemsOf(HistoryOf(Grow)),
      ElementsAre(::testing::AllOf(HasSubstr("the memory of n1 will not suffice: 954 MiB are left"),
                                   HasSubstr("rank 2 has grown by 572 MiB a minute"),
                                   HasSubstr("used up in 1 min"))));
}

TEST(UsageProblemsTest, AreSilentOfMemoryThatLastsOrThatOthersTake) {
  EXPECT_THAT(ProblemsOf(HistoryOf([](int second, auto& sample) {
                Grow(second, sample);
                sample.memory_left += 1e12F;
              })),
              IsEmpty());
  EXPECT_THAT(ProblemsOf(HistoryOf([](int second, auto& sample) {
                sample.memory_left = 4e9F - 1e7F * static_cast<float>(second);
              })),
              IsEmpty());
  EXPECT_THAT(ProblemsOf(HistoryOf([](int second, auto& sample) {
                Grow(std::min(second, 120), sample);  // and stays
              })),
              IsEmpty());
}

TEST(UsageProblemsTest, NameARankThatHasNoProcessorWhileTheOthersDo) {
  EXPECT_THAT(ProblemsOf(HistoryOf([](int, auto& sample) { sample.ranks[3].cpu_wait = 0.7F; })),
              ElementsAre("rank 3 on n1 is slower than the others: 70 % of the last minute it "
                          "could have run and had no processor (half of the ranks: at most 1 %)"));
}

TEST(UsageProblemsTest, NameNoneWhereAllWait) {
  EXPECT_THAT(ProblemsOf(HistoryOf([](int, auto& sample) {
                for (spec::RankUsage& rank : sample.ranks) rank.cpu_wait = 0.7F;
              })),
              IsEmpty());
}

TEST(UsageProblemsTest, NameRanksThatAreStoppedOrWaitForADisk) {
  const auto history = HistoryOf([](int second, auto& sample) {
    sample.ranks[0].stopped = second > kSeconds - 12;
    sample.ranks[1].blocked = second > kSeconds - 40;
    sample.ranks[2].stopped = second % 5 != 0;
  });
  EXPECT_THAT(ProblemsOf(history),
              ElementsAre("rank 0 on n1 has been stopped for 11s, as by SIGSTOP or a debugger: the "
                          "others wait for it",
                          "rank 1 on n1 has waited for a disk, a file server or a device for 39s"));
}

TEST(UsageProblemsTest, MeasureToTheLastSample) {
  const auto history =
      HistoryOf([](int second, auto& sample) { sample.ranks[0].stopped = second > kSeconds - 8; });
  EXPECT_THAT(ProblemsOf(history, kNow + absl::Seconds(20)), IsEmpty()) << "it may go on by now";
}

TEST(UsageProblemsTest, AreSilentOfAStateThatWasSeenNowAndThen) {
  const auto seen_each = [](int seconds) {
    NodeHistory history(0, 1);
    for (int second = 0; second <= 60; second += seconds) {
      spec::UsageSample sample{.time = kNow - absl::Seconds(60 - second)};
      sample.ranks = {{.rank = 0, .stopped = true}};
      history.Add(sample);
    }
    return ProblemsOf(history);
  };
  EXPECT_THAT(seen_each(3).size(), 1);
  EXPECT_THAT(seen_each(6), IsEmpty());
}

TEST(UsageProblemsTest, AreSilentWhereNothingWasHeardForAWhile) {
  EXPECT_THAT(ProblemsOf(HistoryOf(Grow), kNow + absl::Minutes(1)), IsEmpty());
}

}  // namespace
}  // namespace tutti::service
