#include "platform/client/jobs/runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

LoggedRunView Of(const std::string& id, const std::string& name, const std::string& parent,
                 double loss) {
  return {.id = id, .name = name, .parent = parent, .metrics = {{"loss", loss}}};
}

TEST(RunLines, TellWhichRunEachMetricIsOfBelowItsParent) {
  std::vector<LoggedRunView> runs = {Of("a", "search", "", 1), Of("b", "fold-0", "a", 2),
                                     Of("c", "inner", "b", 3), Of("0123456789abcdef", "", "a", 4),
                                     Of("d", "other", "", 5)};
  runs[0].metrics.clear();
  EXPECT_THAT(RunLines(runs, Extent::kAll, "j"),
              ElementsAre("search", "├─ fold-0    loss 2", "│  └─ inner  loss 3",
                          "└─ 01234567  loss 4", "other        loss 5"));
}

TEST(RunLines, RunsOfOneNameHaveTheirIdsToo) {
  EXPECT_THAT(RunLines({Of("0123456789", "fold", "", 1), Of("abcdefghij", "fold", "", 2)},
                       Extent::kAll, "j"),
              ElementsAre("fold 01234567  loss 1", "fold abcdefgh  loss 2"));
}

TEST(RunLines, OneRunNeedsNone) {
  EXPECT_THAT(RunLines({Of("a", "search", "", 1)}, Extent::kAll, "j"), IsEmpty());
}

TEST(RunLines, TheFirstFewAreBrief) {
  const std::vector<LoggedRunView> runs = {Of("a", "a", "", 1), Of("b", "b", "", 2),
                                           Of("c", "c", "", 3), Of("d", "d", "", 4),
                                           Of("e", "e", "", 5), Of("f", "f", "", 6)};
  EXPECT_THAT(RunLines(runs, Extent::kBrief, "j"),
              ElementsAre("a  loss 1", "b  loss 2", "c  loss 3", "d  loss 4",
                          "… and 2 more: tutti job show j --all"));
}

}  // namespace
}  // namespace tutti::client
