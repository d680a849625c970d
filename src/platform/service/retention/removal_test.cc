#include "platform/service/retention/removal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kDay = absl::Hours(24);
const absl::Time kToday = absl::FromUnixSeconds(1'800'000'000);

Kept Unused(const std::string& name, int days, uint64_t bytes = 1 << 20, bool in_use = false) {
  return {KeptKind::kResults, name, bytes, kToday - days * kDay, in_use};
}
std::vector<std::string> Gone(const std::vector<Kept>& kept, const spec::KeepFor& limit) {
  std::vector<std::string> lines;
  for (const Removal& one : ToRemove(kept, limit, kToday)) {
    lines.push_back(one.what.name + ": " + one.why);
  }
  return lines;
}

TEST(RemovalTest, NothingGoesWithoutALimit) {
  EXPECT_THAT(Gone({Unused("a", 4000)}, {}), IsEmpty());
}

TEST(RemovalTest, WhatIsUnusedForLongerThanTheAgeGoes) {
  EXPECT_THAT(Gone({Unused("new", 1), Unused("old", 41), Unused("edge", 30)}, {.age = 30 * kDay}),
              ElementsAre("old: unused for 41 days (retention.results.age: 30 days)"));
  EXPECT_THAT(Gone({Unused("old", 1)}, {.age = absl::Hours(1)}),
              ElementsAre("old: unused for 1 day (retention.results.age: 1 hour)"));
}

TEST(RemovalTest, TheLongestUnusedGoUntilTheRestFits) {
  EXPECT_THAT(Gone({Unused("a", 1), Unused("c", 3), Unused("b", 2)}, {.size = 1 << 20}),
              ElementsAre("c: longest unused of 3 MiB (retention.results.size: 1 MiB)",
                          "b: longest unused of 2 MiB (retention.results.size: 1 MiB)"));
  EXPECT_THAT(Gone({Unused("a", 1)}, {.size = 1 << 20}), IsEmpty()) << "just as much";
}

TEST(RemovalTest, WhatWasTooOldCountsNoMoreForTheSize) {
  EXPECT_THAT(Gone({Unused("a", 41), Unused("b", 2)}, {.age = 30 * kDay, .size = 1 << 20}),
              ElementsAre("a: unused for 41 days (retention.results.age: 30 days)"));
}

TEST(RemovalTest, WhatIsInUseStaysAndCounts) {
  EXPECT_THAT(Gone({Unused("live", 41, 5 << 20, true), Unused("b", 2)}, {.size = 5 << 20}),
              ElementsAre("b: longest unused of 6 MiB (retention.results.size: 5 MiB)"));
  EXPECT_THAT(Gone({Unused("live", 41, 1, true)}, {.age = kDay}), IsEmpty());
}

TEST(RemovalTest, WhatATimeAheadUsedIsNotOld) {
  EXPECT_THAT(Gone({Unused("ahead", -4)}, {.age = kDay}), IsEmpty());
}

}  // namespace
}  // namespace tutti::service
