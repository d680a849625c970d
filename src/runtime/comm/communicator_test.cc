// Every reduction over sizes, transports, types, operations and lengths, against a plain reference.
// Covers: data_type.cc, collective/ring.cc, collective/reduce_scatter.cc, collective/links.cc,
// collective/all_reduce.cc, group/two_level.cc, collective/node/form.cc, group/join.cc,
// collective/latency_optimal.cc, collective/reduction/reduce_operation.h.
#include "runtime/comm/communicator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/comm/contract_test_support.h"

namespace tutti::comm {
namespace {

using Transport = GroupOptions::Transport;

class CommunicatorTest : public ContractTest {};

TEST_P(CommunicatorTest, AllReduceEqualsTheReferenceForEveryTypeOperationAndLength) {
  Run([&](Communicator& group) {
    for (const size_t count : {0, 1, 7, 1000, 20011}) {
      for (const DataType type : kTypes) {
        for (const ReduceOp op : kOps) {
          if (!Exists(type, op)) continue;
          ByteVector data = Input(group.rank(), count, type, op);
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
  const ByteVector expected = Expected(size(), kCount, DataType::kFloat32, ReduceOp::kMean);
  Run([&](Communicator& group) {
    ByteVector data = Input(group.rank(), kCount, DataType::kFloat32, ReduceOp::kMean);
    ASSERT_TRUE(
        group.AllReduce(data.data(), kCount, DataType::kFloat32, ReduceOp::kMean, Soon()).ok());
    ASSERT_TRUE(data == expected);
  });
}

// Numbers whose sum depends on the order: all ranks and all repetitions still agree to the bit.
TEST_P(CommunicatorTest, AllReduceGivesEqualBitsOnAllRanksAndAtEveryRepetition) {
  for (const size_t count : {999u, 100003u}) {
    for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
      std::vector<ByteVector> results(2 * size());
      Run([&](Communicator& group) {
        for (int repetition = 0; repetition < 2; ++repetition) {
          ByteVector data(count * SizeOf(type));
          for (size_t i = 0; i < count; ++i) {
            const double wild = std::sin(static_cast<double>(i * 31 + group.rank() * 1009)) *
                                std::pow(2.0, static_cast<int>(i + group.rank()) % 9);
            Put(type, data.data() + i * SizeOf(type), wild);
          }
          ASSERT_TRUE(group.AllReduce(data.data(), count, type, ReduceOp::kSum, Soon()).ok());
          results[repetition * size() + group.rank()] = data;
        }
      });
      for (const ByteVector& result : results) ASSERT_TRUE(result == results[0]);
    }
  }
}

TEST_P(CommunicatorTest, AllReduceWorksAfterATransferOfAnOddNumberOfBytes) {
  Run([&](Communicator& group) {
    ByteVector odd(3);
    ASSERT_TRUE(group.Broadcast(odd.data(), odd.size(), 0, Soon()).ok());
    for (int i = 0; i < 3; ++i) {
      ByteVector data = Input(group.rank(), 300007, DataType::kFloat64, ReduceOp::kSum);
      ASSERT_TRUE(
          group.AllReduce(data.data(), 300007, DataType::kFloat64, ReduceOp::kSum, Soon()).ok());
      ASSERT_TRUE(data == Expected(size(), 300007, DataType::kFloat64, ReduceOp::kSum));
    }
  });
}

TEST_P(CommunicatorTest, ReduceScatterGivesEveryRankItsPartOfTheReduction) {
  Run([&](Communicator& group) {
    for (const size_t count : {0, 1, 5, 700, 6007}) {
      for (const DataType type : kTypes) {
        for (const ReduceOp op : kOps) {
          if (!Exists(type, op)) continue;
          const auto counts = UnevenParts(count);
          const ByteVector input = Input(group.rank(), Sum(counts), type, op);
          ByteVector output(counts[group.rank()] * SizeOf(type));
          const absl::Status status =
              group.ReduceScatter(input.data(), counts, output.data(), type, op, Soon());
          ASSERT_TRUE(status.ok()) << status;
          ASSERT_TRUE(output == PartOf(Expected(size(), Sum(counts), type, op), counts,
                                       group.rank(), SizeOf(type)))
              << "rank " << group.rank() << " count " << count << " type " << NameOf(type) << " op "
              << NameOf(op);
          ASSERT_TRUE(input == Input(group.rank(), Sum(counts), type, op));
        }
      }
    }
  });
}

TEST_P(CommunicatorTest, ReduceScatterWorksWhereThePartLies) {
  Run([&](Communicator& group) {
    for (const size_t count : {100, 50021}) {
      const auto counts = UnevenParts(count);
      ByteVector data = Input(group.rank(), Sum(counts), DataType::kFloat32, ReduceOp::kMean);
      ByteVector wanted = data;
      const ByteVector part =
          PartOf(Expected(size(), Sum(counts), DataType::kFloat32, ReduceOp::kMean), counts,
                 group.rank(), 4);
      const size_t offset = 4 * Sum(std::span(counts).first(group.rank()));
      std::copy(part.begin(), part.end(), wanted.begin() + static_cast<ptrdiff_t>(offset));
      ASSERT_TRUE(group
                      .ReduceScatter(data.data(), counts, data.data() + offset, DataType::kFloat32,
                                     ReduceOp::kMean, Soon())
                      .ok());
      ASSERT_TRUE(data == wanted);
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

INSTANTIATE_TEST_SUITE_P(OneNode, CommunicatorTest, OneNode(), CaseName);
INSTANTIATE_TEST_SUITE_P(ManyNodes, CommunicatorTest, ManyNodes(), CaseName);

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
