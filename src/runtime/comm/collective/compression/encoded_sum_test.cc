// What happens to the encoded sum when memory or a peer is not there in the middle of it. What it
// calculates: compression_test.cc.
#include "runtime/comm/collective/compression/encoded_sum.h"

#include <gtest/gtest.h>

#include <new>
#include <thread>

#include "runtime/comm/group/group_test_support.h"

namespace tutti::comm {
namespace {

constexpr size_t kEncodedElements = 1'000'000;

// Rank 0 of two, whose peer sends zeros. Where it is told to, it fails as if memory had run out:
// nothing else of the sum can be made to.
class Failing final : public Communicator {
 public:
  enum class Where { kNowhere, kInTheExchange, kBesideIt };
  explicit Failing(Where where) : where_(where) {}
  int exchanges() const { return exchanges_; }

  int rank() const override { return 0; }
  int size() const override {
    const bool beside = std::this_thread::get_id() != owner_;
    if (where_ == Where::kBesideIt && beside && exchanges_ > 0) throw std::bad_alloc();
    return 2;
  }
  absl::Status AllToAllV(const void*, std::span<const size_t>, void* output,
                         std::span<const size_t> bytes, base::Deadline) override {
    std::fill_n(static_cast<std::byte*>(output), bytes[1], std::byte{0});
    if (++exchanges_ > 1 && where_ == Where::kInTheExchange) throw std::bad_alloc();
    return absl::OkStatus();
  }

  Placement placement() const override { return {}; }
  absl::Status AllReduce(void*, size_t, DataType, ReduceOp, base::Deadline) override {
    return Unused();
  }
  absl::Status ReduceScatter(const void*, std::span<const size_t>, void*, DataType, ReduceOp,
                             base::Deadline) override {
    return Unused();
  }
  absl::Status Broadcast(void*, size_t, int, base::Deadline) override { return Unused(); }
  absl::Status AllGather(const void*, size_t, void*, base::Deadline) override { return Unused(); }
  absl::Status AllGatherV(const void*, std::span<const size_t>, void*, base::Deadline) override {
    return Unused();
  }
  absl::Status Barrier(base::Deadline) override { return Unused(); }
  absl::Status Send(const void*, size_t, int, base::Deadline) override { return Unused(); }
  absl::Status Receive(void*, size_t, int, base::Deadline) override { return Unused(); }
  absl::StatusOr<std::unique_ptr<Communicator>> NewGroup(std::span<const int>,
                                                         base::Deadline) override {
    return Unused();
  }
  absl::StatusOr<std::unique_ptr<SharedBuffer>> AllocateShared(size_t) override { return Unused(); }

 private:
  static absl::Status Unused() { return absl::UnimplementedError("the sum needs none"); }

  const Where where_;
  const std::thread::id owner_ = std::this_thread::get_id();
  std::atomic<int> exchanges_ = 0;
};

TEST(EncodedSum, MemoryThatIsNotThereOnEitherThreadComesOutAtTheCallerAndTheSumGoesOn) {
  for (const auto where : {Failing::Where::kInTheExchange, Failing::Where::kBesideIt}) {
    EncodedSum sum(Encoding::kInt8);
    {
      std::vector<float> values(kEncodedElements, 1.0f), residual(kEncodedElements);
      Failing group(where);
      EXPECT_THROW(sum.Run(group, values, residual, Soon()).IgnoreError(), std::bad_alloc);
      EXPECT_GT(group.exchanges(), 0);
    }
    std::vector<float> values(kEncodedElements, 1.0f);
    Failing group(Failing::Where::kNowhere);
    EXPECT_TRUE(sum.Run(group, values, {}, Soon()).ok());
    EXPECT_EQ(values[0], 1) << "the peer's part is zero";
  }
}

}  // namespace
}  // namespace tutti::comm
