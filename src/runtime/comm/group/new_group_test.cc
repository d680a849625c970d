// Groups of some ranks of a group.
#include "runtime/comm/group/new_group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "absl/strings/str_cat.h"
#include "base/test_patience.h"
#include "runtime/comm/group/group_test_support.h"

namespace tutti::comm {
namespace {

using Transport = GroupOptions::Transport;

// A group of four on two nodes.
void OnFourRanks(const std::function<void(Communicator&)>& body) {
  OnEveryRank(OptionsFor(4, Transport::kAuto, 2), [&](int, auto group) {
    ASSERT_TRUE(group.ok()) << group.status();
    body(**group);
  });
}

int SumOfRanks(Communicator& group, int own) {
  int sum = own;
  const absl::Status status = group.AllReduce(&sum, 1, DataType::kInt32, ReduceOp::kSum, Soon());
  EXPECT_TRUE(status.ok()) << status;
  return sum;
}

TEST(NewGroup, NumbersItsRanksInAscendingOrderWhateverTheListsOrder) {
  OnFourRanks([](Communicator& whole) {
    if (whole.rank() == 1) return;
    const std::vector<int> ranks = {3, 0, 2};
    auto part = whole.NewGroup(ranks, Soon());
    ASSERT_TRUE(part.ok()) << part.status();
    EXPECT_EQ((*part)->size(), 3);
    EXPECT_EQ((*part)->rank(), whole.rank() == 0 ? 0 : whole.rank() - 1);
    EXPECT_EQ(SumOfRanks(**part, whole.rank()), 5);
    int value = whole.rank();
    ASSERT_TRUE((*part)->Broadcast(&value, sizeof(value), 2, Soon()).ok());
    EXPECT_EQ(value, 3);
  });
}

TEST(NewGroup, SeveralFormAtTheSameTimeAndWorkBesideTheWhole) {
  OnFourRanks([](Communicator& whole) {
    const int parity = whole.rank() % 2;
    const std::vector<int> ranks = {parity, parity + 2};
    auto part = whole.NewGroup(ranks, Soon());
    ASSERT_TRUE(part.ok()) << part.status();
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(SumOfRanks(**part, whole.rank()), 2 * parity + 2);
      EXPECT_EQ(SumOfRanks(whole, whole.rank()), 6);
    }
  });
}

TEST(NewGroup, KnowsWhereItsRanksStand) {
  OnFourRanks([](Communicator& whole) {
    if (whole.rank() == 0) return;
    const std::vector<int> ranks = {1, 2, 3};
    auto part = whole.NewGroup(ranks, Soon());
    ASSERT_TRUE(part.ok()) << part.status();
    const Placement place = (*part)->placement();
    EXPECT_EQ(place.node_count, 2);
    EXPECT_EQ(place.node_rank, whole.rank() == 1 ? 0 : 1);
    EXPECT_EQ(place.local_size, whole.rank() == 1 ? 1 : 2);
    EXPECT_EQ(place.local_rank, whole.rank() == 3 ? 1 : 0);
    EXPECT_FALSE(place.homogeneous);
    EXPECT_TRUE(whole.placement().homogeneous);
  });
}

TEST(NewGroup, OfOneNeedsNobody) {
  OnFourRanks([](Communicator& whole) {
    const int self[] = {whole.rank()};
    auto part = whole.NewGroup(self, Soon());
    ASSERT_TRUE(part.ok()) << part.status();
    EXPECT_EQ((*part)->size(), 1);
    EXPECT_EQ(SumOfRanks(**part, 7), 7);
    auto again = (*part)->NewGroup(std::vector<int>{0}, Soon());
    EXPECT_TRUE(again.ok()) << again.status();
  });
}

TEST(NewGroup, OutlivesTheGroupThatItIsOf) {
  OnEveryRank(OptionsFor(3, Transport::kTcp), [](int rank, auto whole) {
    ASSERT_TRUE(whole.ok()) << whole.status();
    const std::vector<int> all = {0, 1, 2};
    auto part = (*whole)->NewGroup(all, Soon());
    ASSERT_TRUE(part.ok()) << part.status();
    whole->reset();
    EXPECT_EQ(SumOfRanks(**part, rank), 3);
  });
}

TEST(NewGroup, AnErrorNamesTheRankInBothGroupsAndEndsOnlyTheOne) {
  OnFourRanks([](Communicator& whole) {
    if (whole.rank() > 0) {
      const std::vector<int> three = {1, 2, 3};
      auto outer = whole.NewGroup(three, Soon());
      ASSERT_TRUE(outer.ok()) << outer.status();
      if (whole.rank() != 2) {
        const std::vector<int> two = {0, 2};  // ranks 1 and 3 of the whole
        auto inner = (*outer)->NewGroup(two, Soon());
        ASSERT_TRUE(inner.ok()) << inner.status();
        if (whole.rank() == 3) inner->reset();
        if (whole.rank() == 1) {
          const absl::Status status = (*inner)->Barrier(Soon());
          EXPECT_EQ(LostRank(status), 1) << status;
          EXPECT_TRUE(Says(status, "rank 1 left the group")) << status;
          EXPECT_TRUE(Says(status, "rank 1 of this group is rank 3 of the whole one")) << status;
          EXPECT_EQ((*inner)->Barrier(Soon()), status);
        }
      }
      EXPECT_EQ(SumOfRanks(**outer, 1), 3);
    }
    EXPECT_EQ(SumOfRanks(whole, 1), 4);
  });
}

TEST(NewGroup, RefusesListsThatMakeNoSenseAndGoesOn) {
  OnFourRanks([](Communicator& whole) {
    const auto fault = [&](std::vector<int> ranks) {
      const absl::Status status = whole.NewGroup(ranks, Soon()).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      return std::string(status.message());
    };
    EXPECT_EQ(fault({0, 1, 2, 3, 4}), "rank 4 in a group of 4");
    EXPECT_EQ(fault({-1, 0, 1, 2, 3}), "rank -1 in a group of 4");
    EXPECT_EQ(fault({0, 1, 2, 3, 1}), "rank 1 twice in a new group");
    EXPECT_EQ(fault({(whole.rank() + 1) % 4}),
              absl::StrCat("rank ", whole.rank(), " forms a group that it is not in (of ",
                           (whole.rank() + 1) % 4, ")"));
    EXPECT_TRUE(whole.Barrier(Soon()).ok());
  });
}

TEST(NewGroup, RanksThatMeanDifferentOnesAreTold) {
  OnFourRanks([](Communicator& whole) {
    if (whole.rank() > 1) return;
    const std::vector<int> ranks = {0, 1, 2 + whole.rank()};
    const absl::Status status =
        whole.NewGroup(ranks, base::Deadline::After(base::Patient(absl::Seconds(5)))).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_TRUE(Says(status, absl::StrCat("forms a group of ranks 0, 1, ", 2 + whole.rank())))
        << status;
  });
}

TEST(NewGroup, AMemberThatDoesNotComeIsMissedAtTheDeadline) {
  std::promise<void> missed;
  const auto over = missed.get_future().share();
  OnFourRanks([&](Communicator& whole) {
    if (whole.rank() != 1) return over.wait();
    const std::vector<int> ranks = {1, 2};
    const absl::Status status =
        whole.NewGroup(ranks, base::Deadline::After(absl::Milliseconds(300))).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_EQ(LostRank(status), 2) << status;
    EXPECT_EQ(whole.Barrier(Soon()), status);
    missed.set_value();
  });
}

// Rank 0 waits for rank 2 over its link, rank 1 at the rendezvous.
TEST(NewGroup, ALossInTheWholeGroupIsHeardOfByThoseThatForm) {
  std::promise<void> heard;
  const auto over = heard.get_future().share();
  std::atomic<int> waiting = 2;
  OnFourRanks([&](Communicator& whole) {
    if (whole.rank() == 2) return over.wait();
    if (whole.rank() == 3) {
      int value = 0;
      EXPECT_EQ(LostRank(whole.Receive(&value, sizeof(value), 2,
                                       base::Deadline::After(absl::Milliseconds(200)))),
                2);
      return over.wait();
    }
    const std::vector<int> ranks = {0, 1, 2};
    const absl::Status status = whole.NewGroup(ranks, Soon()).status();
    EXPECT_EQ(LostRank(status), 2) << status;
    if (--waiting == 0) heard.set_value();
  });
}

}  // namespace
}  // namespace tutti::comm
