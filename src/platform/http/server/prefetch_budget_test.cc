#include "platform/http/server/prefetch_budget.h"

#include <gtest/gtest.h>

namespace tutti::http {
namespace {

TEST(PrefetchBudget, IsOfEachPartyAndWhatWasRefusedTakesNothing) {
  PrefetchBudget budget(100);
  EXPECT_TRUE(budget.Take(Party::kNode, 60));
  EXPECT_FALSE(budget.Take(Party::kNode, 41));
  EXPECT_TRUE(budget.Take(Party::kUser, 100));
  EXPECT_TRUE(budget.Take(Party::kNode, 40));
  EXPECT_FALSE(budget.Take(Party::kNode, 1));
  budget.GiveBack(Party::kNode, 60);
  EXPECT_TRUE(budget.Take(Party::kNode, 60));
}

}  // namespace
}  // namespace tutti::http
