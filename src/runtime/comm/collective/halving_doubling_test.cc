// Halving and doubling over every size of group, which the choice by measurement may never take.
// Covers: chunks.h.
#include "runtime/comm/collective/halving_doubling.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/comm/collective/links_test_support.h"
#include "runtime/comm/transport/ucx_channel.h"

namespace tutti::comm {
namespace {

// As where there is RDMA, but for that: UCX then goes over TCP.
TEST(HalvingDoublingTest, AddsOverMemoryWithinNodesAndUcxBetweenThem) {
  if (!CheckUcx().ok()) GTEST_SKIP() << "no UCX";
  OnEveryRanksLinks(
      OptionsFor(4, GroupOptions::Transport::kAuto, 2),
      [](Links& links) {
        std::vector<double> data(100'003, links.rank());
        const Reduction sum{DataType::kFloat64, ReduceOp::kSum, 4};
        for (int i = 0; i < 10; ++i) {
          std::fill(data.begin(), data.end(), links.rank());
          const absl::Status status = HalvingDoublingAllReduce(
              links, reinterpret_cast<std::byte*>(data.data()), data.size(), sum, Soon());
          ASSERT_TRUE(status.ok()) << status;
          ASSERT_EQ(data, std::vector<double>(data.size(), 6));
        }
      },
      /*rdma=*/true);
}

TEST(HalvingDoublingTest, AddsForEverySizeOfGroupAndEveryLength) {
  for (const int size : {2, 3, 4, 5, 6, 7, 8, 9}) {
    OnEveryRanksLinks(size, [&](Links& links) {
      for (const size_t count : {1, 3, 100, 1023, 50021}) {
        std::vector<double> data(count);
        for (size_t i = 0; i < count; ++i) data[i] = static_cast<double>(i + links.rank());
        const Reduction mean{DataType::kFloat64, ReduceOp::kMean, size};
        const absl::Status status = HalvingDoublingAllReduce(
            links, reinterpret_cast<std::byte*>(data.data()), count, mean, Soon());
        ASSERT_TRUE(status.ok()) << status;
        for (size_t i = 0; i < count; ++i) {
          ASSERT_DOUBLE_EQ(data[i], static_cast<double>(i) + (size - 1) / 2.0) << size << " " << i;
        }
      }
    });
  }
}

}  // namespace
}  // namespace tutti::comm
