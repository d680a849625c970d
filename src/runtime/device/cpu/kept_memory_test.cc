#include "runtime/device/cpu/kept_memory.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <memory>
#include <set>
#include <vector>

namespace tutti::device {
namespace {

constexpr int64_t kMiB = 1 << 20;

torch::Tensor Block(int64_t bytes) { return torch::empty({bytes}, torch::kUInt8); }

class KeptMemoryTest : public testing::Test {
 protected:
  void SetUp() override { KeepLargeBlocks(); }
};

TEST_F(KeptMemoryTest, AStepLikeTheLastAsksTheSystemForNothing) {
  const auto step = [] {
    std::set<const void*> places;
    std::vector<torch::Tensor> held;
    for (const int64_t size : {3 * kMiB, 7 * kMiB + 5, 3 * kMiB, 20 * kMiB}) {
      held.push_back(Block(size).fill_(1));
      places.insert(held.back().const_data_ptr());
    }
    return places;
  };
  const auto places = step();
  const KeptMemory before = MeasureKeptMemory();
  EXPECT_EQ(step(), places);
  EXPECT_EQ(MeasureKeptMemory().mappings, before.mappings);
  EXPECT_EQ(MeasureKeptMemory().used_bytes, before.used_bytes);
}

TEST_F(KeptMemoryTest, TheLastToBeFreedIsTheFirstToBeTaken) {
  auto first = Block(4 * kMiB), second = Block(4 * kMiB);
  const void* const place = first.const_data_ptr();
  second.reset();
  first.reset();
  EXPECT_EQ(Block(4 * kMiB).const_data_ptr(), place);
}

TEST_F(KeptMemoryTest, ABlockMuchTooLargeIsNotTaken) {
  const auto in_use = Block(300 * kMiB);
  const void* const place = Block(64 * kMiB).const_data_ptr();
  const auto small = Block(30 * kMiB);
  EXPECT_NE(small.const_data_ptr(), place);
  EXPECT_EQ(Block(62 * kMiB).const_data_ptr(), place);
}

TEST_F(KeptMemoryTest, WhatFitsNobodyGoesBackToTheSystem) {
  for (const int64_t size : {100, 150, 200, 260, 330, 420}) Block(size * kMiB);
  const KeptMemory now = MeasureKeptMemory();
  EXPECT_GE(now.most_used_bytes, static_cast<size_t>(420 * kMiB));
  EXPECT_LE(now.used_bytes + now.kept_bytes, now.most_used_bytes + now.most_used_bytes / 2);
}

TEST_F(KeptMemoryTest, WhatIsKeptCanBeGivenBack) {
  const auto in_use = Block(2 * kMiB);
  Block(40 * kMiB);
  EXPECT_GE(MeasureKeptMemory().kept_bytes, static_cast<size_t>(40 * kMiB));
  ReturnKeptBlocks();
  const KeptMemory now = MeasureKeptMemory();
  EXPECT_EQ(now.kept_bytes, 0u);
  EXPECT_EQ(now.most_used_bytes, now.used_bytes);
  EXPECT_GE(now.used_bytes, static_cast<size_t>(2 * kMiB));
}

TEST_F(KeptMemoryTest, SmallTensorsAndResizedOnesAreAsEver) {
  const size_t used = MeasureKeptMemory().used_bytes;
  auto tensor = torch::arange(1000, torch::kInt64);
  EXPECT_EQ(MeasureKeptMemory().used_bytes, used);
  tensor.resize_({kMiB});
  EXPECT_EQ(MeasureKeptMemory().used_bytes, used + 8 * kMiB);
  EXPECT_EQ(tensor[999].item<int64_t>(), 999);
  EXPECT_TRUE(torch::equal(tensor.clone(), tensor));
}

class Reports : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* block, int64_t size, size_t, size_t, c10::Device) override {
    bytes.push_back(size);
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::vector<int64_t> bytes;
};

TEST_F(KeptMemoryTest, TheProfilerIsToldWhatTensorsAskedForAndGaveBack) {
  Block(3 * kMiB);  // so that a block is kept that fits
  const auto reports = std::make_shared<Reports>();
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, reports);
    Block(3 * kMiB - 5);
    Block(100);
  }
  Block(3 * kMiB);
  EXPECT_THAT(reports->bytes, testing::ElementsAre(3 * kMiB - 5, 5 - 3 * kMiB, 100, -100));
}

}  // namespace
}  // namespace tutti::device
