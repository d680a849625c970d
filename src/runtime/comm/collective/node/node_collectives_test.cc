// Ranks of one node over memory that they share: the ways that communicator_test.cc, whose data lie
// in plain memory, does not come by; and that all ways give the same bits.
// Covers: node_team.cc, node_locate.cc, node_copy.cc, node_reduce.cc, plain_buffer.cc,
// copy_to_slot.h.
#include "runtime/comm/collective/node/node_collectives.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>

#include "runtime/comm/group/group_test_support.h"
#include "runtime/comm/reference_test_support.h"

namespace tutti::comm {
namespace {

using Transport = GroupOptions::Transport;

// Who has the data in a shared buffer.
enum class Sharing { kAll, kEven };

class NodeCollectivesTest : public testing::TestWithParam<std::tuple<int, Sharing>> {
 protected:
  int size() const { return std::get<0>(GetParam()); }
  bool Shares(int rank) const { return std::get<1>(GetParam()) == Sharing::kAll || rank % 2 == 0; }

  void Run(const std::function<void(Communicator&)>& body) {
    OnEveryRank(OptionsFor(size(), Transport::kSharedMemory),
                [&](int, absl::StatusOr<std::unique_ptr<Communicator>> group) {
                  ASSERT_TRUE(group.ok()) << group.status();
                  body(**group);
                });
  }
};

// Room for `bytes` at an odd place, of a shared buffer or of plain memory.
class Place {
 public:
  Place(Communicator& group, bool shared, size_t bytes, size_t at) : plain_(bytes + at) {
    data_ = plain_.data() + at;
    if (!shared) return;
    buffer_ = *group.AllocateShared(bytes + at);
    data_ = static_cast<std::byte*>(buffer_->data()) + at;
  }
  std::byte* data() const { return data_; }

 private:
  ByteVector plain_;
  std::unique_ptr<SharedBuffer> buffer_;
  std::byte* data_;
};

TEST_P(NodeCollectivesTest, AllReduceEqualsTheReferenceForEveryTypeOperationAndLength) {
  Run([&](Communicator& group) {
    const Place place(group, Shares(group.rank()), 8 * 300007, 3);
    for (const size_t count : {0, 1, 7, 5000, 20011, 300007}) {
      for (const DataType type : kTypes) {
        for (const ReduceOp op : kOps) {
          if (!Exists(type, op) || (count == 300007 && op != ReduceOp::kMean)) continue;
          const ByteVector input = Input(group.rank(), count, type, op);
          std::copy(input.begin(), input.end(), place.data());
          const absl::Status status = group.AllReduce(place.data(), count, type, op, Soon());
          ASSERT_TRUE(status.ok()) << status;
          const ByteVector expected = Expected(size(), count, type, op);
          ASSERT_TRUE(std::equal(expected.begin(), expected.end(), place.data()))
              << "rank " << group.rank() << " count " << count << " type " << NameOf(type) << " op "
              << NameOf(op);
        }
      }
    }
  });
}

TEST_P(NodeCollectivesTest, ReduceScatterBroadcastAndAllGatherEqualTheReference) {
  Run([&](Communicator& group) {
    for (const size_t count : {1000, 400009}) {
      const Place place(group, Shares(group.rank()), 4 * count * size(), 1);
      const size_t all = count * size();
      const std::vector<size_t> counts(size(), count);
      ByteVector input = Input(group.rank(), all, DataType::kInt32, ReduceOp::kSum);
      std::copy(input.begin(), input.end(), place.data());
      ByteVector output(4 * count);
      ASSERT_TRUE(group
                      .ReduceScatter(place.data(), counts, output.data(), DataType::kInt32,
                                     ReduceOp::kSum, Soon())
                      .ok());
      const ByteVector sum = Expected(size(), all, DataType::kInt32, ReduceOp::kSum);
      ASSERT_EQ(std::memcmp(output.data(), sum.data() + 4 * count * group.rank(), 4 * count), 0);

      const int root = size() - 1;
      if (group.rank() == root) std::copy(sum.begin(), sum.end(), place.data());
      ASSERT_TRUE(group.Broadcast(place.data(), sum.size(), root, Soon()).ok());
      ASSERT_EQ(std::memcmp(place.data(), sum.data(), sum.size()), 0);

      std::memset(place.data(), 0, sum.size());
      ASSERT_TRUE(group.AllGather(output.data(), output.size(), place.data(), Soon()).ok());
      ASSERT_EQ(std::memcmp(place.data(), sum.data(), sum.size()), 0);
    }
  });
}

TEST_P(NodeCollectivesTest, EveryWayGivesTheSameBits) {
  constexpr size_t kCount = 200003;
  std::mutex mutex;
  std::vector<ByteVector> results;
  Run([&](Communicator& group) {
    const Place place(group, Shares(group.rank()), 4 * kCount, 0);
    ByteVector wild(4 * kCount);
    for (size_t i = 0; i < kCount; ++i) {
      Put(DataType::kFloat32, wild.data() + 4 * i,
          std::sin(static_cast<double>(i * 31 + group.rank() * 1009)) *
              std::pow(2.0, static_cast<int>(i + group.rank()) % 9));
    }
    const auto reduce = [&](std::byte* data, size_t from, size_t count) {
      std::memcpy(data + 4 * from, wild.data() + 4 * from, 4 * count);
      ASSERT_TRUE(
          group.AllReduce(data + 4 * from, count, DataType::kFloat32, ReduceOp::kSum, Soon()).ok());
    };
    ByteVector plain(4 * kCount), pieces(4 * kCount);
    reduce(place.data(), 0, kCount);
    reduce(plain.data(), 0, kCount);
    for (size_t from = 0; from < kCount; from += 1000) {
      reduce(pieces.data(), from, std::min<size_t>(1000, kCount - from));
    }
    const std::lock_guard lock(mutex);
    results.emplace_back(place.data(), place.data() + 4 * kCount);
    results.push_back(plain);
    results.push_back(pieces);
  });
  for (const ByteVector& result : results) ASSERT_TRUE(result == results[0]);
}

TEST_P(NodeCollectivesTest, BuffersComeAndGo) {
  Run([&](Communicator& group) {
    std::unique_ptr<SharedBuffer> last;
    for (int round = 0; round < 40; ++round) {
      const size_t count = 30000 + 1000 * round;
      auto buffer = *group.AllocateShared(4 * count);
      if (round % 3 == 0) continue;  // never used
      const ByteVector input = Input(group.rank(), count, DataType::kInt32, ReduceOp::kSum);
      for (int again = 0; again < 2; ++again) {
        std::memcpy(buffer->data(), input.data(), input.size());
        ASSERT_TRUE(
            group.AllReduce(buffer->data(), count, DataType::kInt32, ReduceOp::kSum, Soon()).ok());
        const ByteVector expected = Expected(size(), count, DataType::kInt32, ReduceOp::kSum);
        ASSERT_EQ(std::memcmp(buffer->data(), expected.data(), expected.size()), 0);
      }
      if (round % 2 == 0) last = std::move(buffer);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Teams, NodeCollectivesTest,
                         testing::Combine(testing::Values(2, 3, 4, 8),
                                          testing::Values(Sharing::kAll, Sharing::kEven)),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) + "Ranks" +
                                  (std::get<1>(info.param) == Sharing::kAll ? "AllShare"
                                                                            : "SomeShare");
                         });

TEST(SharedBufferTest, OutlivesItsGroupAsPlainMemory) {
  std::vector<std::unique_ptr<SharedBuffer>> buffers(2);
  OnEveryRank(OptionsFor(2, Transport::kSharedMemory),
              [&](int rank, absl::StatusOr<std::unique_ptr<Communicator>> group) {
                ASSERT_TRUE(group.ok());
                buffers[rank] = *(*group)->AllocateShared(100000);
                ASSERT_TRUE((*group)
                                ->AllReduce(buffers[rank]->data(), 100000, DataType::kUint8,
                                            ReduceOp::kSum, Soon())
                                .ok());
              });
  std::memset(buffers[0]->data(), 1, buffers[0]->size());
  EXPECT_EQ(static_cast<char*>(buffers[0]->data())[99999], 1);
}

TEST(SharedBufferTest, IsPlainMemoryInAGroupOfOne) {
  auto group = JoinGroup(GroupOptions());
  ASSERT_TRUE(group.ok());
  auto buffer = (*group)->AllocateShared(10);
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(static_cast<char*>((*buffer)->data())[9], 0);
  EXPECT_TRUE(absl::IsInvalidArgument((*group)->AllocateShared(0).status()));
}

}  // namespace
}  // namespace tutti::comm
