// Over links whose costs are known, since they are a model's.
#include "runtime/comm/collective/measurement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "base/test_patience.h"
#include "runtime/comm/collective/links_test_support.h"

namespace tutti::comm {
namespace {

// What is received comes `latency` later than it came to the channel within, and a piece can leave
// once the one before has taken its bytes' time. It is never slept on: what is due comes by no
// descriptor.
class ModelledChannel final : public Channel {
 public:
  ModelledChannel(std::unique_ptr<Channel> within, absl::Duration latency, absl::Duration per_byte)
      : within_(std::move(within)), latency_(latency), per_byte_(per_byte) {}

  absl::StatusOr<size_t> TrySend(std::span<const std::byte> bytes) override {
    const absl::Duration now = base::SteadyNow();
    if (now < free_at_) return 0;
    const auto sent = within_->TrySend(bytes.first(std::min(bytes.size(), kPiece)));
    if (sent.ok()) free_at_ = now + static_cast<double>(*sent) * per_byte_;
    return sent;
  }
  absl::StatusOr<size_t> TrySendParts(Parts parts) override {
    return parts.empty() ? 0 : TrySend(parts[0]);
  }
  absl::StatusOr<bool> Flush() override { return within_->Flush(); }

  absl::StatusOr<size_t> TryReceive(std::span<std::byte> bytes) override {
    std::vector<std::byte> piece(kPiece);
    const auto came = within_->TryReceive(piece);
    if (!came.ok() && coming_.empty()) return came;
    if (came.ok() && *came > 0) {
      piece.resize(*came);
      coming_.push_back({base::SteadyNow() + latency_, std::move(piece)});
    }
    if (coming_.empty() || base::SteadyNow() < coming_.front().due) {
      std::this_thread::yield();
      return 0;
    }
    std::vector<std::byte>& first = coming_.front().bytes;
    const size_t taken = std::min(bytes.size(), first.size());
    std::copy_n(first.begin(), taken, bytes.begin());
    first.erase(first.begin(), first.begin() + static_cast<ptrdiff_t>(taken));
    if (first.empty()) coming_.pop_front();
    return taken;
  }
  absl::StatusOr<std::span<const std::byte>> Peek(size_t, size_t) override {
    return absl::UnimplementedError("nothing that is tested here looks before it takes");
  }
  void Release(size_t) override {}
  int fd() const override { return within_->fd(); }
  short PrepareToSleep(bool, size_t) override { return 0; }
  void Wake() override {}
  bool IsCheapToWatch() const override { return true; }

 private:
  static constexpr size_t kPiece = 16 << 10;
  struct Coming {
    absl::Duration due;
    std::vector<std::byte> bytes;
  };

  const std::unique_ptr<Channel> within_;
  const absl::Duration latency_, per_byte_;
  absl::Duration free_at_ = absl::ZeroDuration();
  std::deque<Coming> coming_;
};

// Every rank's costs; rank 0 begins `late` after the others.
std::vector<LinkCost> Costs(int size, const WrapChannel& wrap = {},
                            absl::Duration late = absl::ZeroDuration()) {
  std::mutex mutex;
  std::vector<LinkCost> costs;
  OnEveryRanksLinks(
      OptionsFor(size, GroupOptions::Transport::kTcp),
      [&](Links& links) {
        const absl::Duration begin = base::SteadyNow() + late;
        while (links.rank() == 0 && base::SteadyNow() < begin) std::this_thread::yield();
        const auto cost = MeasureLinks(links, Soon());
        ASSERT_TRUE(cost.ok()) << cost.status();
        const std::lock_guard lock(mutex);
        costs.push_back(*cost);
      },
      /*rdma=*/false, wrap);
  return costs;
}

WrapChannel Modelled(absl::Duration latency, absl::Duration per_byte) {
  return [=](std::unique_ptr<Channel> within) {
    return std::make_unique<ModelledChannel>(std::move(within), latency, per_byte);
  };
}

TEST(MeasurementTest, AllRanksGetRankZerosNumbers) {
  const std::vector<LinkCost> costs = Costs(3);
  ASSERT_EQ(costs.size(), 3u);
  for (const LinkCost& cost : costs) {
    EXPECT_GT(cost.alpha, 0);
    EXPECT_GT(cost.gamma, 0);
    EXPECT_EQ(cost.alpha, costs[0].alpha);
    EXPECT_EQ(cost.beta, costs[0].beta);
    EXPECT_EQ(cost.gamma, costs[0].gamma);
  }
}

// The bytes of the others are there before it asks, which says nothing of the way.
TEST(MeasurementTest, AMessageCostsItsWayThoughRankZeroComesLate) {
  const absl::Duration latency = absl::Milliseconds(2);
  for (const int size : {2, 3, 4}) {
    const auto costs = Costs(size, Modelled(latency, absl::ZeroDuration()), /*late=*/latency * 3);
    ASSERT_EQ(costs.size(), static_cast<size_t>(size));
    EXPECT_GE(costs[0].alpha, absl::ToDoubleSeconds(latency)) << size;
    EXPECT_EQ(ChooseAllReduce(4096, 4, costs[0]), AllReduceAlgorithm::kDoubling) << size;
  }
}

TEST(MeasurementTest, AByteCostsWhatTheLinkTakesForIt) {
  const double per_byte = 100e-9;  // 80 Mbit/s, so that what the machine takes hardly counts
  const auto costs = Costs(2, Modelled(absl::Milliseconds(1), absl::Seconds(per_byte)));
  ASSERT_EQ(costs.size(), 2u);
  EXPECT_GE(costs[0].beta, 0.7 * per_byte);  // the last piece of 64 KiB is not waited for
  EXPECT_LE(costs[0].beta, 2 * base::TestPatience() * per_byte);
}

}  // namespace
}  // namespace tutti::comm
