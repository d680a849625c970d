#include "http/server/prefetch_budget.h"

#include <gtest/gtest.h>

namespace tutti::http {
namespace {

TEST(PrefetchBudget, IsOfEachPartyAndWhatWasRefusedTakesNothing) {
  PrefetchBudget budget(100);
  EXPECT_TRUE(budget.Take(Role::kNode, 60));
  EXPECT_FALSE(budget.Take(Role::kNode, 41));
  EXPECT_TRUE(budget.Take(Role::kUser, 100));
  EXPECT_TRUE(budget.Take(Role::kNode, 40));
  EXPECT_FALSE(budget.Take(Role::kNode, 1));
  budget.GiveBack(Role::kNode, 60);
  EXPECT_TRUE(budget.Take(Role::kNode, 60));
}

}  // namespace
}  // namespace tutti::http
