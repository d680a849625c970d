// Every collective that moves bytes and does not reduce, over sizes, transports and lengths.
// Covers: collective/all_gather.cc, collective/all_to_all.cc, collective/ring.cc, group/join.cc.
#include <gtest/gtest.h>

#include <atomic>

#include "runtime/comm/contract_test_support.h"

namespace tutti::comm {
namespace {

class MovementTest : public ContractTest {};

TEST_P(MovementTest, BroadcastGivesEveryRankTheRootsBytes) {
  Run([&](Communicator& group) {
    for (int root = 0; root < size(); ++root) {
      for (const size_t count : {0, 1, 7, 1000, 3000017}) {
        ByteVector data = Pattern(group.rank(), count);
        ASSERT_TRUE(group.Broadcast(data.data(), count, root, Soon()).ok());
        ASSERT_TRUE(data == Pattern(root, count));
      }
    }
  });
}

TEST_P(MovementTest, AllGatherPutsTheInputsInRankOrder) {
  Run([&](Communicator& group) {
    for (const size_t count : {0, 1, 7, 1000, 16385, 700001}) {
      const std::vector<size_t> sizes(size(), count);
      const ByteVector input = Pattern(group.rank(), count);
      ByteVector output(count * size());
      ASSERT_TRUE(group.AllGather(input.data(), count, output.data(), Soon()).ok());
      ASSERT_TRUE(output == Gathered(sizes));
    }
  });
}

TEST_P(MovementTest, AllGatherVTakesPartsOfEverySizeAlsoInPlace) {
  Run([&](Communicator& group) {
    for (const size_t count : {0, 1, 7, 1000, 70001}) {
      const auto sizes = UnevenParts(count);
      const ByteVector input = Pattern(group.rank(), sizes[group.rank()]);
      ByteVector output(Sum(sizes)), same(Sum(sizes));
      ASSERT_TRUE(group.AllGatherV(input.data(), sizes, output.data(), Soon()).ok());
      ASSERT_TRUE(output == Gathered(sizes));
      std::byte* const own = same.data() + Sum(std::span(sizes).first(group.rank()));
      std::copy(input.begin(), input.end(), own);
      ASSERT_TRUE(group.AllGatherV(own, sizes, same.data(), Soon()).ok());
      ASSERT_TRUE(same == output);
    }
  });
}

TEST_P(MovementTest, AllToAllVBringsEveryRanksPartToEveryOther) {
  // What `from` has for `to`, with no part for some.
  const auto part = [](int from, int to, size_t most) {
    return Pattern(from * 31 + to, most * static_cast<size_t>((from * 3 + to) % 4) / 3);
  };
  Run([&](Communicator& group) {
    for (const size_t most : {0, 1, 1000, 300001}) {
      std::vector<size_t> sent, received;
      ByteVector input, expected;
      for (int other = 0; other < size(); ++other) {
        const ByteVector to = part(group.rank(), other, most),
                         from = part(other, group.rank(), most);
        sent.push_back(to.size());
        received.push_back(from.size());
        input.insert(input.end(), to.begin(), to.end());
        expected.insert(expected.end(), from.begin(), from.end());
      }
      ByteVector output(expected.size());
      const absl::Status status =
          group.AllToAllV(input.data(), sent, output.data(), received, Soon());
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_TRUE(output == expected);
    }
  });
}

TEST_P(MovementTest, SentMessagesArriveInOrderBetweenEveryTwoRanks) {
  Run([&](Communicator& group) {
    // Every pair meets in the same order on all ranks.
    for (int low = 0; low < size(); ++low) {
      for (int high = low + 1; high < size(); ++high) {
        for (const size_t bytes : {0, 1, 3, 1000, 800001}) {
          const bool up = (low + high + bytes) % 2 == 0;
          const int from = up ? low : high, to = up ? high : low;
          ByteVector data = Pattern(from, bytes);
          if (group.rank() == from) {
            ASSERT_TRUE(group.Send(data.data(), bytes, to, Soon()).ok());
          }
          if (group.rank() != to) continue;
          ByteVector come(bytes);
          ASSERT_TRUE(group.Receive(come.data(), bytes, from, Soon()).ok());
          ASSERT_TRUE(come == data);
        }
      }
    }
    ASSERT_TRUE(group.Barrier(Soon()).ok());
  });
}

TEST_P(MovementTest, MessagesRoundTheRingAndAllToAllFollowEachOtherAtOnce) {
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

TEST_P(MovementTest, BarrierIsPassedOnlyWhenAllHaveReachedIt) {
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

INSTANTIATE_TEST_SUITE_P(OneNode, MovementTest, OneNode(), CaseName);
INSTANTIATE_TEST_SUITE_P(ManyNodes, MovementTest, ManyNodes(), CaseName);

}  // namespace
}  // namespace tutti::comm
