// Every collective over sizes, transports, types, operations and lengths, against a plain
// reference.
#include "runtime/comm/communicator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <tuple>

#include "runtime/comm/group_test_support.h"
#include "runtime/comm/reference_test_support.h"

namespace tutti::comm {
namespace {

using Transport = GroupOptions::Transport;

// Size of the group, transport, ranks per node.
class CommunicatorTest : public testing::TestWithParam<std::tuple<int, Transport, int>> {
 protected:
  int size() const { return std::get<0>(GetParam()); }

  // A part for every rank, about `count` elements in the mean, one of which has none.
  std::vector<size_t> UnevenParts(size_t count) const {
    std::vector<size_t> parts(size());
    for (int r = 0; r < size(); ++r)
      parts[r] = count * static_cast<size_t>((r + 1) % 3) + count % 7;
    if (size() > 2) parts[size() - 2] = 0;
    return parts;
  }
  static size_t Sum(std::span<const size_t> parts) {
    return std::accumulate(parts.begin(), parts.end(), size_t{0});
  }
  static Bytes PartOf(const Bytes& all, std::span<const size_t> parts, int rank, size_t width) {
    const auto begin = all.begin() + static_cast<ptrdiff_t>(width * Sum(parts.first(rank)));
    return {begin, begin + static_cast<ptrdiff_t>(width * parts[rank])};
  }
  static Bytes Gathered(std::span<const size_t> sizes) {
    Bytes all;
    for (size_t rank = 0; rank < sizes.size(); ++rank) {
      const Bytes part = Pattern(static_cast<int>(rank), sizes[rank]);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  // Runs `body` on every rank, expecting that all join.
  void Run(const std::function<void(Communicator&)>& body) {
    auto options = OptionsFor(size(), std::get<1>(GetParam()), std::get<2>(GetParam()));
    for (GroupOptions& one : options) one.check_calls = size() == 3;
    OnEveryRank(options, [&](int, absl::StatusOr<std::unique_ptr<Communicator>> group) {
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
          if (!Exists(type, op)) continue;
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
        Bytes data = Pattern(group.rank(), count);
        ASSERT_TRUE(group.Broadcast(data.data(), count, root, Soon()).ok());
        ASSERT_TRUE(data == Pattern(root, count));
      }
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
          const Bytes input = Input(group.rank(), Sum(counts), type, op);
          Bytes output(counts[group.rank()] * SizeOf(type));
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
      Bytes data = Input(group.rank(), Sum(counts), DataType::kFloat32, ReduceOp::kMean);
      Bytes wanted = data;
      const Bytes part = PartOf(Expected(size(), Sum(counts), DataType::kFloat32, ReduceOp::kMean),
                                counts, group.rank(), 4);
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

TEST_P(CommunicatorTest, AllGatherPutsTheInputsInRankOrder) {
  Run([&](Communicator& group) {
    for (const size_t count : {0, 1, 7, 1000, 16385, 700001}) {
      const std::vector<size_t> sizes(size(), count);
      const Bytes input = Pattern(group.rank(), count);
      Bytes output(count * size());
      ASSERT_TRUE(group.AllGather(input.data(), count, output.data(), Soon()).ok());
      ASSERT_TRUE(output == Gathered(sizes));
    }
  });
}

TEST_P(CommunicatorTest, AllGatherVTakesPartsOfEverySizeAlsoInPlace) {
  Run([&](Communicator& group) {
    for (const size_t count : {0, 1, 7, 1000, 70001}) {
      const auto sizes = UnevenParts(count);
      const Bytes input = Pattern(group.rank(), sizes[group.rank()]);
      Bytes output(Sum(sizes)), same(Sum(sizes));
      ASSERT_TRUE(group.AllGatherV(input.data(), sizes, output.data(), Soon()).ok());
      ASSERT_TRUE(output == Gathered(sizes));
      std::byte* const own = same.data() + Sum(std::span(sizes).first(group.rank()));
      std::copy(input.begin(), input.end(), own);
      ASSERT_TRUE(group.AllGatherV(own, sizes, same.data(), Soon()).ok());
      ASSERT_TRUE(same == output);
    }
  });
}

TEST_P(CommunicatorTest, AllToAllVBringsEveryRanksPartToEveryOther) {
  // What `from` has for `to`, with no part for some.
  const auto part = [](int from, int to, size_t most) {
    return Pattern(from * 31 + to, most * static_cast<size_t>((from * 3 + to) % 4) / 3);
  };
  Run([&](Communicator& group) {
    for (const size_t most : {0, 1, 1000, 300001}) {
      std::vector<size_t> sent, received;
      Bytes input, expected;
      for (int other = 0; other < size(); ++other) {
        const Bytes to = part(group.rank(), other, most), from = part(other, group.rank(), most);
        sent.push_back(to.size());
        received.push_back(from.size());
        input.insert(input.end(), to.begin(), to.end());
        expected.insert(expected.end(), from.begin(), from.end());
      }
      Bytes output(expected.size());
      const absl::Status status =
          group.AllToAllV(input.data(), sent, output.data(), received, Soon());
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_TRUE(output == expected);
    }
  });
}

TEST_P(CommunicatorTest, SentMessagesArriveInOrderBetweenEveryTwoRanks) {
  Run([&](Communicator& group) {
    // Every pair meets in the same order on all ranks.
    for (int low = 0; low < size(); ++low) {
      for (int high = low + 1; high < size(); ++high) {
        for (const size_t bytes : {0, 1, 3, 1000, 800001}) {
          const bool up = (low + high + bytes) % 2 == 0;
          const int from = up ? low : high, to = up ? high : low;
          Bytes data = Pattern(from, bytes);
          if (group.rank() == from) {
            ASSERT_TRUE(group.Send(data.data(), bytes, to, Soon()).ok());
          }
          if (group.rank() != to) continue;
          Bytes come(bytes);
          ASSERT_TRUE(group.Receive(come.data(), bytes, from, Soon()).ok());
          ASSERT_TRUE(come == data);
        }
      }
    }
    ASSERT_TRUE(group.Barrier(Soon()).ok());
  });
}

TEST_P(CommunicatorTest, MessagesRoundTheRingAndAllToAllFollowEachOtherAtOnce) {
  Run([&](Communicator& group) {
    if (size() == 1) return;
    for (int distance = 1; distance < size(); ++distance) {
      const int right = (group.rank() + distance) % size();
      const int left = (group.rank() + size() - distance) % size();
      int sent = group.rank(), come = -1;
      // In a circle somebody has to receive first; of the circle of `distance` the lowest rank
      // does.
      int lowest = group.rank();
      for (int next = right; next != group.rank(); next = (next + distance) % size()) {
        lowest = std::min(lowest, next);
      }
      const auto receive = [&] { return group.Receive(&come, sizeof(come), left, Soon()); };
      const auto send = [&] { return group.Send(&sent, sizeof(sent), right, Soon()); };
      const bool first = lowest == group.rank();
      ASSERT_TRUE((first ? receive() : send()).ok());
      ASSERT_TRUE((first ? send() : receive()).ok());
      ASSERT_EQ(come, left);
    }
    const std::vector<size_t> sizes(size(), sizeof(int));
    std::vector<int> input(size(), group.rank()), output(size());
    ASSERT_TRUE(group.AllToAllV(input.data(), sizes, output.data(), sizes, Soon()).ok());
    for (int rank = 0; rank < size(); ++rank) ASSERT_EQ(output[rank], rank);
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
                         testing::Combine(testing::Values(1, 2, 3, 4, 5, 8),
                                          testing::Values(Transport::kTcp,
                                                          Transport::kSharedMemory),
                                          testing::Values(kOneNode)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(ManyNodes, CommunicatorTest,
                         testing::Combine(testing::Values(2, 5, 8),
                                          testing::Values(Transport::kAuto), testing::Values(1, 3)),
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
