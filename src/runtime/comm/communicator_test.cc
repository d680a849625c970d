// Every collective over sizes, transports, types, operations and lengths, against a plain
// reference.
#include "runtime/comm/communicator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <tuple>

#include "runtime/comm/collective/half.h"
#include "runtime/comm/group_test_support.h"

namespace tutti::comm {
namespace {

using Bytes = std::vector<std::byte>;
using Transport = GroupOptions::Transport;

constexpr DataType kTypes[] = {DataType::kFloat64,  DataType::kFloat32, DataType::kFloat16,
                               DataType::kBFloat16, DataType::kInt64,   DataType::kInt32,
                               DataType::kInt8,     DataType::kUint8};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax,
                             ReduceOp::kProduct};

// Small whole numbers, so that every type holds every result exactly, in whatever order it adds.
int Value(int rank, size_t i, ReduceOp op) {
  const int value = static_cast<int>((i * 7 + rank * 13 + i / 5) % 11);
  return op == ReduceOp::kProduct ? 1 + value % 2 : value;
}

void Put(DataType type, std::byte* at, double value) {
  const auto put = [&](auto stored) { std::memcpy(at, &stored, sizeof(stored)); };
  switch (type) {
    case DataType::kFloat64:
      return put(value);
    case DataType::kFloat32:
      return put(static_cast<float>(value));
    case DataType::kFloat16:
      return put(FloatToHalf(static_cast<float>(value)));
    case DataType::kBFloat16:
      return put(FloatToBFloat16(static_cast<float>(value)));
    case DataType::kInt64:
      return put(static_cast<int64_t>(value));
    case DataType::kInt32:
      return put(static_cast<int32_t>(value));
    case DataType::kInt8:
      return put(static_cast<int8_t>(value));
    case DataType::kUint8:
      return put(static_cast<uint8_t>(value));
  }
}

Bytes Input(int rank, size_t count, DataType type, ReduceOp op) {
  Bytes data(count * SizeOf(type));
  for (size_t i = 0; i < count; ++i) {
    Put(type, data.data() + i * SizeOf(type), Value(rank, i, op));
  }
  return data;
}

Bytes Expected(int size, size_t count, DataType type, ReduceOp op) {
  Bytes data(count * SizeOf(type));
  for (size_t i = 0; i < count; ++i) {
    double result = Value(0, i, op);
    for (int rank = 1; rank < size; ++rank) {
      const double value = Value(rank, i, op);
      switch (op) {
        case ReduceOp::kSum:
        case ReduceOp::kMean:
          result += value;
          break;
        case ReduceOp::kMin:
          result = std::min(result, value);
          break;
        case ReduceOp::kMax:
          result = std::max(result, value);
          break;
        case ReduceOp::kProduct:
          result *= value;
          break;
      }
    }
    if (op == ReduceOp::kMean) {
      const bool floating = type == DataType::kFloat64 || type == DataType::kFloat32 ||
                            type == DataType::kFloat16 || type == DataType::kBFloat16;
      result = floating ? result / size : std::trunc(result / size);
    }
    Put(type, data.data() + i * SizeOf(type), result);
  }
  return data;
}

// Size of the group, transport, ranks per node.
class CommunicatorTest : public testing::TestWithParam<std::tuple<int, Transport, int>> {
 protected:
  int size() const { return std::get<0>(GetParam()); }

  // Runs `body` on every rank, expecting that all join.
  void Run(const std::function<void(Communicator&)>& body) {
    OnEveryRank(OptionsFor(size(), std::get<1>(GetParam()), std::get<2>(GetParam())),
                [&](int, absl::StatusOr<std::unique_ptr<Communicator>> group) {
                  ASSERT_TRUE(group.ok()) << group.status();
                  body(**group);
                });
  }
};

TEST_P(CommunicatorTest, AllReduceEqualsTheReferenceForEveryTypeOperationAndLength) {
  Run([&](Communicator& group) {
    for (const size_t count : {0, 1, 7, 1000, 20011}) {
      for (const DataType type : kTypes) {
        for (const ReduceOp op : kOps) {
          Bytes data = Input(group.rank(), count, type, op);
          const absl::Status status = group.AllReduce(data.data(), count, type, op, Soon());
          ASSERT_TRUE(status.ok()) << status;
          ASSERT_TRUE(data == Expected(size(), count, type, op))
              << "rank " << group.rank() << " count " << count << " type " << static_cast<int>(type)
              << " op " << static_cast<int>(op);
        }
      }
    }
  });
}

TEST_P(CommunicatorTest, AllReduceOfALargeBufferEqualsTheReference) {
  constexpr size_t kCount = 1000003;
  const Bytes expected = Expected(size(), kCount, DataType::kFloat32, ReduceOp::kMean);
  Run([&](Communicator& group) {
    Bytes data = Input(group.rank(), kCount, DataType::kFloat32, ReduceOp::kMean);
    ASSERT_TRUE(
        group.AllReduce(data.data(), kCount, DataType::kFloat32, ReduceOp::kMean, Soon()).ok());
    ASSERT_TRUE(data == expected);
  });
}

// Numbers whose sum depends on the order: all ranks and all repetitions still agree to the bit.
TEST_P(CommunicatorTest, AllReduceGivesEqualBitsOnAllRanksAndAtEveryRepetition) {
  for (const size_t count : {999u, 100003u}) {
    for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
      std::vector<Bytes> results(2 * size());
      Run([&](Communicator& group) {
        for (int repetition = 0; repetition < 2; ++repetition) {
          Bytes data(count * SizeOf(type));
          for (size_t i = 0; i < count; ++i) {
            const double wild = std::sin(static_cast<double>(i * 31 + group.rank() * 1009)) *
                                std::pow(2.0, static_cast<int>(i + group.rank()) % 9);
            Put(type, data.data() + i * SizeOf(type), wild);
          }
          ASSERT_TRUE(group.AllReduce(data.data(), count, type, ReduceOp::kSum, Soon()).ok());
          results[repetition * size() + group.rank()] = data;
        }
      });
      for (const Bytes& result : results) ASSERT_TRUE(result == results[0]);
    }
  }
}

TEST_P(CommunicatorTest, AllReduceWorksAfterATransferOfAnOddNumberOfBytes) {
  Run([&](Communicator& group) {
    Bytes odd(3);
    ASSERT_TRUE(group.Broadcast(odd.data(), odd.size(), 0, Soon()).ok());
    for (int i = 0; i < 3; ++i) {
      Bytes data = Input(group.rank(), 300007, DataType::kFloat64, ReduceOp::kSum);
      ASSERT_TRUE(
          group.AllReduce(data.data(), 300007, DataType::kFloat64, ReduceOp::kSum, Soon()).ok());
      ASSERT_TRUE(data == Expected(size(), 300007, DataType::kFloat64, ReduceOp::kSum));
    }
  });
}

TEST_P(CommunicatorTest, BroadcastGivesEveryRankTheRootsBytes) {
  Run([&](Communicator& group) {
    for (int root = 0; root < size(); ++root) {
      for (const size_t count : {0, 1, 7, 1000, 3000017}) {
        Bytes data = Input(group.rank(), count, DataType::kUint8, ReduceOp::kSum);
        ASSERT_TRUE(group.Broadcast(data.data(), count, root, Soon()).ok());
        ASSERT_TRUE(data == Input(root, count, DataType::kUint8, ReduceOp::kSum));
      }
    }
  });
}

TEST_P(CommunicatorTest, AllGatherPutsTheInputsInRankOrder) {
  Run([&](Communicator& group) {
    for (const size_t count : {0, 1, 7, 1000, 700001}) {
      const Bytes input = Input(group.rank(), count, DataType::kUint8, ReduceOp::kSum);
      Bytes output(count * size());
      ASSERT_TRUE(group.AllGather(input.data(), count, output.data(), Soon()).ok());
      Bytes expected;
      for (int rank = 0; rank < size(); ++rank) {
        const Bytes part = Input(rank, count, DataType::kUint8, ReduceOp::kSum);
        expected.insert(expected.end(), part.begin(), part.end());
      }
      ASSERT_TRUE(output == expected);
    }
  });
}

TEST_P(CommunicatorTest, BarrierIsPassedOnlyWhenAllHaveReachedIt) {
  std::atomic<int> reached = 0;
  Run([&](Communicator& group) {
    for (int round = 1; round <= 50; ++round) {
      ++reached;
      ASSERT_TRUE(group.Barrier(Soon()).ok());
      ASSERT_GE(reached.load(), round * size());
      ASSERT_TRUE(group.Barrier(Soon()).ok());
    }
  });
}

TEST_P(CommunicatorTest, RefusesARootThatIsNoRankAndGoesOn) {
  Run([&](Communicator& group) {
    int value = 1;
    EXPECT_TRUE(absl::IsInvalidArgument(group.Broadcast(&value, 4, size(), Soon())));
    EXPECT_TRUE(absl::IsInvalidArgument(group.Broadcast(&value, 4, -1, Soon())));
    EXPECT_TRUE(group.Barrier(Soon()).ok());
  });
}

std::string NameOf(const testing::TestParamInfo<std::tuple<int, Transport, int>>& info) {
  constexpr const char* kNames[] = {"Auto", "Tcp", "Shm"};
  const int per_node = std::get<2>(info.param);
  return std::to_string(std::get<0>(info.param)) + "Ranks" +
         kNames[static_cast<int>(std::get<1>(info.param))] +
         (per_node < 100 ? std::to_string(per_node) + "PerNode" : "");
}

constexpr int kOneNode = 1 << 16;
INSTANTIATE_TEST_SUITE_P(OneNode, CommunicatorTest,
                         testing::Combine(testing::Values(1, 2, 3, 4, 5),
                                          testing::Values(Transport::kTcp,
                                                          Transport::kSharedMemory),
                                          testing::Values(kOneNode)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(ManyNodes, CommunicatorTest,
                         testing::Combine(testing::Values(2, 4, 5),
                                          testing::Values(Transport::kAuto), testing::Values(1, 2)),
                         NameOf);

TEST(Communicator, AGroupOfOneNeedsNoNetworkAndChangesNothing) {
  GroupOptions options;
  options.master_address = "192.0.2.1";  // nobody is there
  auto group = JoinGroup(options);
  ASSERT_TRUE(group.ok());
  float value = 3, gathered = 0;
  EXPECT_TRUE((*group)->AllReduce(&value, 1, DataType::kFloat32, ReduceOp::kMean, Soon()).ok());
  EXPECT_EQ(value, 3);
  EXPECT_TRUE((*group)->AllGather(&value, 4, &gathered, Soon()).ok());
  EXPECT_EQ(gathered, 3);
}

TEST(Communicator, RefusesARankOutsideTheGroup) {
  GroupOptions options;
  options.size = 2;
  options.rank = 2;
  EXPECT_TRUE(absl::IsInvalidArgument(JoinGroup(options).status()));
}

TEST(Communicator, RefusesSharedMemoryBetweenNodes) {
  OnEveryRank(
      OptionsFor(2, Transport::kSharedMemory, 1),
      [](int, absl::StatusOr<std::unique_ptr<Communicator>> group) {
        EXPECT_FALSE(group.ok());
        EXPECT_NE(group.status().message().find("TUTTI_TRANSPORT=shm"), absl::string_view::npos)
            << group.status();
      });
}

}  // namespace
}  // namespace tutti::comm
