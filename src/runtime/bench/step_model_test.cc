#include "runtime/bench/step_model.h"

#include <gtest/gtest.h>

namespace tutti::bench {
namespace {

TEST(FitLink, FindsTheLineThatTimesLieOn) {
  const Link truth{20e-6, 1e-9};
  std::vector<AllReduceTime> times;
  for (double bytes : {1e3, 1e5, 1e6, 1e7}) {
    times.push_back({bytes, truth.alpha + bytes * truth.beta});
  }
  const Link link = FitLink(times);
  EXPECT_NEAR(link.alpha, truth.alpha, 1e-10);
  EXPECT_NEAR(link.beta, truth.beta, 1e-14);
}

TEST(FitLink, IsNeverNegative) {
  const std::vector<AllReduceTime> falling = {{1e3, 2e-3}, {1e6, 1e-3}};
  EXPECT_GE(FitLink(falling).alpha, 0);
  EXPECT_EQ(FitLink(falling).beta, 0);
  const std::vector<AllReduceTime> steep = {{1e3, 1e-6}, {1e6, 1e-2}};
  EXPECT_EQ(FitLink(steep).alpha, 0);
  EXPECT_GT(FitLink(steep).beta, 0);
  EXPECT_EQ(FitLink(std::span<const AllReduceTime>()).beta, 0);
}

const Work kWork = {{.forward = 1, .backward = 2, .optimizer = 0.5}, {100, 100, 100, 100}};

TEST(PredictStep, AFastLinkExposesTheLastBucketAlone) {
  const Prediction p = PredictStep(kWork, {0.1, 0.001}, 1);
  EXPECT_DOUBLE_EQ(p.compute, 3.5);
  EXPECT_NEAR(p.communication, 0.8, 1e-12);
  EXPECT_NEAR(p.exposed, 0.2, 1e-12);
  EXPECT_NEAR(p.step(), 3.7, 1e-12);
}

TEST(PredictStep, ASlowLinkIsBusyFromTheFirstBucketOn) {
  const Prediction p = PredictStep(kWork, {0, 0.01}, 1);
  EXPECT_DOUBLE_EQ(p.communication, 4);
  EXPECT_DOUBLE_EQ(p.exposed, 0.5 + 4 - 2) << "the first is ready after a quarter of backward";
}

TEST(PredictStep, SharedCoresStretchTheComputingAndHideMore) {
  const Prediction p = PredictStep(kWork, {0, 0.01}, 2);
  EXPECT_DOUBLE_EQ(p.compute, 7);
  EXPECT_DOUBLE_EQ(p.exposed, 1 + 4 - 4);
  EXPECT_DOUBLE_EQ(PredictStep(kWork, {}, 1).exposed, 0) << "one rank has nobody to talk to";
}

TEST(Slowdown, BeginsWhereThreadsOutnumberCores) {
  EXPECT_DOUBLE_EQ(Slowdown(2, 1, 4), 1);
  EXPECT_DOUBLE_EQ(Slowdown(4, 1, 2), 2);
  EXPECT_DOUBLE_EQ(Slowdown(3, 4, 8), 1.5);
}

}  // namespace
}  // namespace tutti::bench
