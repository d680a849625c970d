#include "platform/client/jobs/use.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tutti::client {
namespace {

NodeUsageView Node() {
  NodeUsageView node;
  node.age = 2;
  node.recent = {.cpu = {1, 2}, .memory = {1e9, 3e9}, .memory_left = {5e9, 4e9}};
  node.whole = {
      .cpu = {1, 4}, .memory = {7e9, 2e9}, .memory_left = {3e9, 9e9}, .samples = {30, 10}};
  node.ranks.push_back({.rank = 3, .recent = {.cpu = {0.5}}, .whole = {.cpu = {8, 0}}});
  return node;
}

TEST(UseTest, IsTheNewestOfWhatRuns) {
  const Use use = UseOf(Node(), true);
  EXPECT_EQ(use.cores, 2);
  EXPECT_EQ(use.memory, 3e9);
  EXPECT_EQ(use.left, 4e9);
  EXPECT_EQ(use.age, absl::Seconds(2));
  EXPECT_FALSE(use.is_doubtful());
  EXPECT_EQ(UseOf(Node(), Node().ranks[0], true).cores, 0.5);
}

TEST(UseTest, IsTheMeanAndTheMostOfWhatHasEnded) {
  const Use use = UseOf(Node(), false);
  EXPECT_EQ(use.cores, 1.75);
  EXPECT_EQ(use.memory, 7e9);
  EXPECT_EQ(use.left, 3e9);
  EXPECT_EQ(UseOf(Node(), Node().ranks[0], false).cores, 6);
}

TEST(UseTest, IsDoubtfulOnceItIsOldAndThenNotKnown) {
  EXPECT_TRUE(UseOf(Node(), true, absl::Seconds(9)).is_doubtful());
  const Use gone = UseOf(Node(), true, absl::Seconds(44));
  EXPECT_FALSE(gone.is_known());
  EXPECT_EQ(gone.age, absl::Seconds(46));
}

TEST(UseSumTest, SaysWhereItLacksSome) {
  UseSum sum;
  EXPECT_FALSE(sum.Sum().is_known());
  sum.Add({});
  EXPECT_FALSE(sum.Sum().is_known());
  EXPECT_FALSE(sum.Sum().is_doubtful());
  sum.Add({.cores = 1, .left = 5, .age = absl::Seconds(3)});
  EXPECT_TRUE(sum.Sum().is_partial);
}

TEST(UseSumTest, AddsUpAndTakesTheLeastThatIsLeft) {
  UseSum sum;
  sum.Add({.cores = 1, .left = 5, .received = 7, .age = absl::Seconds(3)});
  sum.Add({.cores = 2, .memory = 1, .left = 4, .received = 8, .age = absl::Seconds(1)});
  const Use all = sum.Sum();
  EXPECT_EQ(all.cores, 3);
  EXPECT_EQ(all.memory, 1);
  EXPECT_EQ(all.left, 4);
  EXPECT_EQ(all.received, 15);
  EXPECT_TRUE(std::isnan(all.sent));
  EXPECT_EQ(all.age, absl::Seconds(3));
  EXPECT_FALSE(all.is_doubtful());
  EXPECT_EQ(sum.OfOneMachine().received, 8);
}

TEST(UseTest, IsOfGpusWhatIsBusyAndTheHottest) {
  NodeUsageView node = Node();
  node.recent.gpu_use = {1.5, 1};
  node.recent.gpu_temperature = {70, 60};
  node.whole.gpu_use = {1, 2};
  node.whole.gpu_memory = {4e9, 3e9};
  node.whole.gpu_memory_total = {8e10, 8e10};
  node.whole.gpu_power = {100, 300};
  node.whole.gpu_temperature = {70, 60};
  const Use now = UseOf(node, true);
  EXPECT_EQ(now.gpus, 1);
  EXPECT_EQ(now.gpu_temperature, 60);
  EXPECT_TRUE(std::isnan(now.gpu_memory));
  const Use life = UseOf(node, false);
  EXPECT_EQ(life.gpus, 1.25);
  EXPECT_EQ(life.gpu_memory, 4e9);
  EXPECT_EQ(life.gpu_memory_total, 8e10);
  EXPECT_EQ(life.gpu_power, 150);
  EXPECT_EQ(life.gpu_temperature, 70);
  UseSum sum;
  sum.Add(life);
  sum.Add(now);
  sum.Add({.cores = 1});  // a node without GPUs
  EXPECT_EQ(sum.Sum().gpus, 2.25);
  EXPECT_EQ(sum.Sum().gpu_memory, 4e9);
  EXPECT_EQ(sum.Sum().gpu_power, 150);
  EXPECT_EQ(sum.Sum().gpu_temperature, 70);
  EXPECT_TRUE((Use{.gpu_power = 1}).is_known());
}

TEST(UseTest, IsWrittenOfGpus) {
  Use use = {.gpus = 1.5,
             .gpu_memory = 6e10,
             .gpu_memory_total = 16e10,
             .gpu_power = 411.7,
             .gpu_temperature = 61};
  EXPECT_EQ(GpusText(use), "1.50");
  EXPECT_EQ(GpuMemoryText(use), "60.0 GB of 160 GB");
  EXPECT_EQ(GpuPowerText(use), "412 W");
  EXPECT_EQ(GpuTemperatureText(use), "61 °C");
  use.gpu_memory_total = Use::kUnknown;
  use.is_partial = true;
  EXPECT_EQ(GpusText(use), "~1.50");
  EXPECT_EQ(GpuMemoryText(use), "~60.0 GB");
  EXPECT_EQ(GpuPowerText(use), "~412 W");
  EXPECT_EQ(GpuTemperatureText(use), "~61 °C");
  EXPECT_EQ(GpusText({}) + GpuMemoryText({}) + GpuPowerText({}) + GpuTemperatureText({}), "");
}

TEST(UseTest, IsWrittenWithItsDoubt) {
  Use use = {.cores = 1.966, .memory = 2e9};
  EXPECT_EQ(CoresText(use), "1.97");
  EXPECT_EQ(AmountText(use, use.memory), "2.00 GB");
  EXPECT_EQ(RateText(use, 5e6), "5.00 MB/s");
  EXPECT_EQ(RateText(use, use.sent), "");
  use.age = absl::Seconds(11);
  EXPECT_EQ(CoresText(use), "~1.97");
  EXPECT_EQ(AmountText(use, use.memory), "~2.00 GB");
  EXPECT_EQ(RateText(use, 5e6), "~5.00 MB/s");
  EXPECT_EQ(AmountText(use, -1), "");
}

}  // namespace
}  // namespace tutti::client
