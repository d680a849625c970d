// Halving and doubling over every size of group, which the choice by measurement may never take;
// and that what is chosen is the same on all ranks.
// Covers: measurement.cc, chunks.h.
#include "runtime/comm/collective/halving_doubling.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "runtime/comm/collective/measurement.h"
#include "runtime/comm/group/group_test_support.h"
#include "runtime/comm/rendezvous/rendezvous.h"
#include "runtime/comm/transport/ucx_channel.h"

namespace tutti::comm {
namespace {

// Runs `body` on a thread for every rank, with its links; `all`: every rank's options.
void OnEveryRanksLinks(const std::vector<GroupOptions>& all,
                       const std::function<void(Links&)>& body, bool rdma = false) {
  std::vector<std::thread> threads;
  const int size = static_cast<int>(all.size());
  for (const GroupOptions& options : all) {
    threads.emplace_back([&body, options, size, rdma] {
      Hello self;
      self.rank = options.rank;
      self.size = size;
      self.node = options.node;
      self.transport = options.transport;
      auto listeners = OpenListeners(options, self);
      self.rdma = self.rdma || rdma;
      ASSERT_TRUE(listeners.ok()) << listeners.status();
      auto rendezvous = Rendezvous(options, self);
      ASSERT_TRUE(rendezvous.ok()) << rendezvous.status();
      auto membership = std::make_unique<Membership>(
          options.rank, size, std::move(rendezvous->controls), options.peer_timeout);
      auto connector = *Connector::Make(std::move(rendezvous->table), options.rank, options.token,
                                        *std::move(listeners));
      std::vector<bool> peers(size);
      for (int r = 0; r < size; ++r) peers[r] = NeedsLink(options.rank, r, size);
      auto channels = connector->ConnectAll(peers, {Soon()});
      ASSERT_TRUE(channels.ok()) << channels.status();
      Links links(options.rank, *std::move(channels), std::move(connector), std::move(membership),
                  0);
      ASSERT_TRUE(links.membership().Begin("test").ok());
      body(links);
      links.membership().End();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void OnEveryRanksLinks(int size, const std::function<void(Links&)>& body) {
  OnEveryRanksLinks(OptionsFor(size, GroupOptions::Transport::kTcp), body);
}

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

TEST(MeasurementTest, AllRanksGetRankZerosNumbers) {
  std::mutex mutex;
  std::vector<LinkCost> costs;
  OnEveryRanksLinks(3, [&](Links& links) {
    const auto cost = MeasureLinks(links, Soon());
    ASSERT_TRUE(cost.ok()) << cost.status();
    const std::lock_guard lock(mutex);
    costs.push_back(*cost);
  });
  ASSERT_EQ(costs.size(), 3u);
  for (const LinkCost& cost : costs) {
    EXPECT_GT(cost.alpha, 0);
    EXPECT_GT(cost.gamma, 0);
    EXPECT_EQ(cost.alpha, costs[0].alpha);
    EXPECT_EQ(cost.beta, costs[0].beta);
    EXPECT_EQ(cost.gamma, costs[0].gamma);
  }
}

}  // namespace
}  // namespace tutti::comm
