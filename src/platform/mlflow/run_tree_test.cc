#include "platform/mlflow/run_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tutti::mlflow {
namespace {

using testing::ElementsAre;

Run Of(const std::string& id, const std::string& parent, bool logged = true) {
  return {.id = id, .parent = parent, .metrics = std::vector<Metric>(logged ? 1 : 0)};
}

std::vector<std::string> OrderOf(const std::vector<Run>& runs) {
  std::vector<std::string> told;
  for (const Run& run : WithMetrics(runs)) told.push_back(absl::StrCat(run.id, "<", run.parent));
  return told;
}

TEST(RunTree, ARunIsBehindItsParentElseAsTheyBegan) {
  EXPECT_THAT(OrderOf({Of("a", ""), Of("b", ""), Of("b1", "b"), Of("a1", "a"), Of("a11", "a1"),
                       Of("a2", "a")}),
              ElementsAre("a<", "a1<a", "a11<a1", "a2<a", "b<", "b1<b"));
}

TEST(RunTree, ThoseWithoutMetricsAreToldIfOneWithinThemHasAny) {
  EXPECT_THAT(
      OrderOf({Of("a", "", false), Of("b", "", false), Of("b1", "b", false), Of("b2", "b")}),
      ElementsAre("b<", "b2<b"));
}

TEST(RunTree, AParentThatIsNotThereIsNone) {
  EXPECT_THAT(OrderOf({Of("a", "gone"), Of("b", "b")}), ElementsAre("a<", "b<"));
}

TEST(RunTree, OfACircleEachRunIsToldOnce) {
  EXPECT_THAT(OrderOf({Of("a", "b"), Of("b", "a"), Of("c", "")}), ElementsAre("c<", "a<", "b<a"));
}

}  // namespace
}  // namespace tutti::mlflow
