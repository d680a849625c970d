#include "runtime/train/optimizer/schedule.h"

#include <gtest/gtest.h>

namespace tutti::train {
namespace {

TEST(Schedule, WarmsUpLinearlyToThePeak) {
  const Schedule schedule{.peak = 1, .warmup_steps = 4, .total_steps = 100};
  EXPECT_DOUBLE_EQ(schedule.LearningRate(0), 0.2);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(3), 0.8);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(4), 1);
}

TEST(Schedule, CosineFallsFromPeakToLast) {
  const Schedule schedule{.peak = 1, .last = 0.1, .warmup_steps = 10, .total_steps = 110};
  EXPECT_DOUBLE_EQ(schedule.LearningRate(60), 0.55);
  EXPECT_NEAR(schedule.LearningRate(109), 0.1, 1e-3);
  for (int64_t step = 11; step < 110; ++step) {
    EXPECT_LT(schedule.LearningRate(step), schedule.LearningRate(step - 1));
  }
}

TEST(Schedule, StepMultipliesAtEachMilestone) {
  const Schedule schedule{.kind = Schedule::Kind::kStep,
                          .peak = 1,
                          .gamma = 0.5,
                          .total_steps = 100,
                          .milestones = {30, 60}};
  EXPECT_DOUBLE_EQ(schedule.LearningRate(29), 1);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(30), 0.5);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(60), 0.25);
}

TEST(Schedule, HasAKindForEachName) {
  EXPECT_EQ(Schedule::Names(), (std::vector<absl::string_view>{"cosine", "step", "constant"}));
  EXPECT_EQ(Schedule::KindOf("step"), Schedule::Kind::kStep);
}

TEST(Schedule, ConstantStaysAfterWarmup) {
  const Schedule schedule{
      .kind = Schedule::Kind::kConstant, .peak = 3, .warmup_steps = 2, .total_steps = 10};
  EXPECT_DOUBLE_EQ(schedule.LearningRate(0), 1);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(9), 3);
}

TEST(Schedule, AWarmupLongerThanTheRunIsNoTrap) {
  const Schedule schedule{.peak = 1, .warmup_steps = 10, .total_steps = 5};
  EXPECT_DOUBLE_EQ(schedule.LearningRate(4), 5.0 / 11);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(10), 1);
}

TEST(ScaledToBatch, IsTheLinearScalingRule) { EXPECT_DOUBLE_EQ(ScaledToBatch(0.1, 1024), 0.4); }

}  // namespace
}  // namespace tutti::train
