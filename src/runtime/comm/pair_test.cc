// Messages between two ranks when somebody leaves: of the two it is an error that names it, of the
// others only a loss is.
// Covers: collective/links.cc.
#include <gtest/gtest.h>

#include <future>

#include "base/test_patience.h"
#include "runtime/comm/group/group_test_support.h"
#include "runtime/comm/reference_test_support.h"

namespace tutti::comm {
namespace {

using Transport = GroupOptions::Transport;
using Joined = absl::StatusOr<std::unique_ptr<Communicator>>;

// What one rank tells another's thread.
class Signal {
 public:
  void Set() { set_.set_value(); }
  void Await() const { over_.wait(); }

 private:
  std::promise<void> set_;
  std::shared_future<void> over_ = set_.get_future().share();
};

class PairTest : public testing::TestWithParam<Transport> {
 protected:
  std::vector<GroupOptions> Options(int size) {
    auto options = OptionsFor(size, GetParam());
    for (GroupOptions& one : options) one.peer_timeout = base::PatientTimeout(absl::Seconds(2));
    return options;
  }
};

TEST_P(PairTest, WhatARankSentBeforeItLeftInGoodOrderIsReceived) {
  for (const int sender : {0, 1}) {
    Signal gone;
    OnEveryRank(Options(2), [&](int rank, Joined group) {
      ASSERT_TRUE(group.ok()) << group.status();
      const ByteVector message = Pattern(sender, 10007);
      if (rank == sender) {
        ASSERT_TRUE((*group)->Send(message.data(), message.size(), 1 - rank, Soon()).ok());
        group->reset();
        return gone.Set();
      }
      gone.Await();
      ByteVector come(message.size());
      const absl::Status status = (*group)->Receive(come.data(), come.size(), sender, Soon());
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_TRUE(come == message);
      const absl::Status next = (*group)->Receive(come.data(), 1, sender, Soon());
      EXPECT_EQ(LostRank(next), sender) << next;
      EXPECT_TRUE(Says(next, "left the group before the others were done (during receive)"))
          << next;
    });
  }
}

TEST_P(PairTest, OthersThatLeaveInGoodOrderDoNotDisturbTwo) {
  Signal gone;
  OnEveryRank(Options(3), [&](int rank, Joined group) {
    ASSERT_TRUE(group.ok()) << group.status();
    if (rank == 2) {
      group->reset();
      return gone.Set();
    }
    gone.Await();
    for (int i = 0; i < 100; ++i) {
      int value = rank == 0 ? i : -1;
      const absl::Status status = rank == 0 ? (*group)->Send(&value, sizeof(value), 1, Soon())
                                            : (*group)->Receive(&value, sizeof(value), 0, Soon());
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(value, i);
    }
    const absl::Status all = (*group)->Barrier(Soon());
    EXPECT_EQ(LostRank(all), 2) << all;
  });
}

// Ranks 0 and 3 of eight have no link at first: the wait is for the connection.
TEST_P(PairTest, APeerThatHasLeftBeforeTheyWereConnectedIsNamed) {
  for (const int leaver : {0, 3}) {
    Signal gone;
    OnEveryRank(Options(8), [&](int rank, Joined group) {
      ASSERT_TRUE(group.ok()) << group.status();
      if (rank == leaver) {
        group->reset();
        gone.Set();
      } else if (rank == 3 - leaver) {
        gone.Await();
        int value = 0;
        const absl::Status status = (*group)->Receive(&value, sizeof(value), leaver, Soon());
        EXPECT_EQ(LostRank(status), leaver) << status;
        EXPECT_TRUE(absl::IsUnavailable(status)) << status;
      } else {
        gone.Await();
      }
    });
  }
}

TEST_P(PairTest, APeerThatDoesNotCallIsNamedAtTheDeadline) {
  for (const int size : {2, 8}) {
    for (const int caller : {0, size == 2 ? 1 : 3}) {
      const int silent = (size == 2 ? 1 : 3) - caller;
      Signal over;
      OnEveryRank(Options(size), [&](int rank, Joined group) {
        ASSERT_TRUE(group.ok()) << group.status();
        if (rank != caller) return over.Await();
        int value = 0;
        const absl::Status status = (*group)->Receive(
            &value, sizeof(value), silent, base::Deadline::After(absl::Milliseconds(200)));
        EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
        EXPECT_EQ(LostRank(status), silent) << status;
        over.Set();
      });
    }
  }
}

TEST_P(PairTest, CollectivesAndMessagesMayAlternate) {
  OnEveryRank(Options(4), [&](int rank, Joined group) {
    ASSERT_TRUE(group.ok()) << group.status();
    for (int i = 0; i < 20; ++i) {
      ByteVector data = Pattern(rank, 3001), other(3001);
      ASSERT_TRUE((*group)->Broadcast(data.data(), data.size(), i % 4, Soon()).ok());
      ASSERT_TRUE(data == Pattern(i % 4, 3001));
      const int peer = rank ^ (1 + i % 3);
      const auto send = [&] { return (*group)->Send(data.data(), data.size(), peer, Soon()); };
      const auto receive = [&] {
        return (*group)->Receive(other.data(), other.size(), peer, Soon());
      };
      ASSERT_TRUE((rank < peer ? send() : receive()).ok());
      ASSERT_TRUE((rank < peer ? receive() : send()).ok());
      ASSERT_TRUE(other == data);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, PairTest,
                         testing::Values(Transport::kTcp, Transport::kSharedMemory),
                         [](const auto& info) {
                           return info.param == Transport::kTcp ? "Tcp" : "Shm";
                         });

}  // namespace
}  // namespace tutti::comm
