#include "platform/service/flow/trial_cursor.h"

#include <gtest/gtest.h>

namespace tutti::service {
namespace {

using Order = store::TrialFilter::Order;

store::TrialRecord TrialAt(int64_t sequence, double cost) {
  store::TrialRecord trial;
  trial.job.job.sequence = sequence;
  trial.cost = cost;
  return trial;
}

TEST(TrialCursor, LeadsToWhereThePageEnded) {
  for (const double cost : {0.1, -3e300, 0.0}) {
    store::TrialFilter filter{.order = Order::kBest};
    ASSERT_TRUE(BeginBehind(TrialCursor(Order::kBest, TrialAt(7, cost)), filter).ok());
    EXPECT_EQ(filter.after, 7);
    EXPECT_EQ(filter.after_cost, cost) << "to the last bit";
  }
  store::TrialFilter filter;
  ASSERT_TRUE(BeginBehind(TrialCursor(Order::kNumber, TrialAt(7, 1)), filter).ok());
  EXPECT_EQ(filter.after, 7);
}

TEST(TrialCursor, OfAnotherOrderIsRefused) {
  store::TrialFilter best{.order = Order::kBest}, number;
  EXPECT_EQ(BeginBehind("7", best).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BeginBehind("7-3ff0", number).code(), absl::StatusCode::kInvalidArgument);
  for (const char* text : {"x", "-1", "7-", "7-xyz", ""}) {
    EXPECT_FALSE(BeginBehind(text, best).ok()) << text;
  }
}

}  // namespace
}  // namespace tutti::service
