#include "runtime/comm/collective/call.h"

#include <gtest/gtest.h>

#include <limits>

#include "runtime/comm/group/group_test_support.h"

namespace tutti::comm {
namespace {

using Transport = GroupOptions::Transport;
using Body = std::function<absl::Status(Communicator&)>;

constexpr DataType kFloat = DataType::kFloat32;
constexpr ReduceOp kSum = ReduceOp::kSum;

// What `body` returned on every rank.
std::vector<absl::Status> Statuses(int size, bool check_calls, const Body& body) {
  auto options = OptionsFor(size, Transport::kAuto);
  for (GroupOptions& one : options) one.check_calls = check_calls;
  std::vector<absl::Status> statuses(static_cast<size_t>(size));
  OnEveryRank(options, [&](int rank, auto group) {
    ASSERT_TRUE(group.ok()) << group.status();
    absl::Status& status = statuses[static_cast<size_t>(rank)];
    status = body(**group);
    if (absl::IsFailedPrecondition(status)) {
      EXPECT_EQ((*group)->Barrier(Soon()), status);
    }
  });
  return statuses;
}

// That all of three ranks get this error.
void ExpectTold(const std::string& text, const Body& body) {
  for (const absl::Status& status : Statuses(3, true, body)) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_EQ(std::string(status.message()), "the ranks call different things: " + text);
    EXPECT_FALSE(LostRank(status).has_value());
  }
}

TEST(CheckCalls, DifferentCollectivesAreTold) {
  ExpectTold(
      "rank 0 all-reduce of 4 float32 (sum) (before any collective), "
      "rank 2 broadcast of 16 bytes from root 1 (before any collective)",
      [](Communicator& group) {
        float data[4] = {};
        return group.rank() == 2 ? group.Broadcast(data, 16, 1, Soon())
                                 : group.AllReduce(data, 4, kFloat, kSum, Soon());
      });
}

TEST(CheckCalls, DifferentSizesTypesAndOperationsAreTold) {
  ExpectTold(
      "rank 0 all-reduce of 4 float32 (sum) (before any collective), "
      "rank 1 all-reduce of 5 float32 (sum) (before any collective)",
      [](Communicator& group) {
        float data[8] = {};
        return group.AllReduce(data, 4 + static_cast<size_t>(group.rank()), kFloat, kSum, Soon());
      });
  ExpectTold(
      "rank 0 all-reduce of 4 int32 (max) (before any collective), "
      "rank 1 all-reduce of 4 float32 (Adasum) (before any collective)",
      [](Communicator& group) {
        float data[4] = {};
        return group.rank() == 0
                   ? group.AllReduce(data, 4, DataType::kInt32, ReduceOp::kMax, Soon())
                   : group.AllReduce(data, 4, kFloat, ReduceOp::kAdasum, Soon());
      });
}

TEST(CheckCalls, ARankThatIsElsewhereInItsProgramIsTold) {
  ExpectTold("rank 0 all-reduce of 1 float32 (sum) (after 1), rank 1 barrier (after 1)",
             [](Communicator& group) {
               float value = 0;
               const absl::Status first = group.Barrier(Soon());
               if (!first.ok()) return first;
               return group.rank() == 1 ? group.Barrier(Soon())
                                        : group.AllReduce(&value, 1, kFloat, kSum, Soon());
             });
}

TEST(CheckCalls, DifferentSizesByRankAreTold) {
  ExpectTold(
      "rank 0 reduce-scatter of 6 float32 (sum) (before any collective), "
      "rank 1 reduce-scatter of 6 float32 (sum) (before any collective); the sizes by rank differ",
      [](Communicator& group) {
        float data[6] = {}, part[6];
        const std::vector<size_t> here = {1, 2, 3}, there = {3, 2, 1};
        return group.ReduceScatter(data, group.rank() == 1 ? there : here, part, kFloat, kSum,
                                   Soon());
      });
}

TEST(CheckCalls, AnAllToAllWhoseSizesDoNotMatchIsTold) {
  const auto statuses = Statuses(3, true, [](Communicator& group) {
    const std::vector<size_t> four = {4, 4, 4};
    std::vector<size_t> sent = four;
    if (group.rank() == 1) sent[2] = 3;
    char input[12] = {}, output[12];
    return group.AllToAllV(input, sent, output, four, Soon());
  });
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(std::string(status.message()),
              "in an all-to-all rank 1 sends 3 bytes to rank 2, which receives 4 bytes from it");
  }
}

TEST(CheckCalls, ASendThatIsReceivedWithAnotherSizeOrNotAtAllIsTold) {
  const auto sizes = Statuses(2, true, [](Communicator& group) {
    char data[8] = {};
    return group.rank() == 0 ? group.Send(data, 8, 1, Soon()) : group.Receive(data, 7, 0, Soon());
  });
  const auto kinds = Statuses(2, true, [](Communicator& group) {
    char data[8] = {};
    return group.rank() == 0 ? group.Send(data, 8, 1, Soon()) : group.Barrier(Soon());
  });
  for (const absl::Status& status : sizes) {
    EXPECT_EQ(std::string(status.message()),
              "the ranks call different things: rank 0 send of 8 bytes to rank 1 (before any "
              "collective), rank 1 receive of 7 bytes from rank 0 (before any collective)");
  }
  // If one rank calls for a pair and the other for a collective, one side may leave before the
  // other has compared.
  bool told = false;
  for (const absl::Status& status : kinds) {
    EXPECT_FALSE(status.ok());
    told |= status.message() ==
            "the ranks call different things: rank 0 send of 8 bytes to rank 1 (before any "
            "collective), rank 1 barrier (before any collective)";
  }
  EXPECT_TRUE(told);
}

TEST(CheckCalls, EqualCallsPass) {
  const auto statuses = Statuses(3, true, [](Communicator& group) {
    for (int i = 0; i < 3; ++i) {
      float data[3] = {1, 2, 3}, parts[3];
      const std::vector<size_t> one = {4, 4, 4};
      absl::Status status = group.AllReduce(data, 3, kFloat, kSum, Soon());
      if (status.ok()) status = group.AllToAllV(data, one, parts, one, Soon());
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  });
  for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
}

TEST(CheckCalls, WhatAPeerSendsMayBeAnyNumberAndIsDescribedAllTheSame) {
  for (const int number : {10, 1000000, -1, std::numeric_limits<int>::min()}) {
    const Call call = {.kind = Call::Kind::kAllReduce,
                       .type = static_cast<DataType>(number),
                       .op = static_cast<ReduceOp>(number),
                       .count = 4};
    EXPECT_EQ(Describe(call), "all-reduce of 4 something unknown (something unknown)");
  }
}

// Every fault in a group of three and in one of one, before anything is sent: the barrier passes.
TEST(Arguments, ThatMakeNoSenseAreRefusedAndEndNothing) {
  for (const int size : {1, 3}) {
    const auto statuses = Statuses(size, false, [](Communicator& group) {
      const auto refused = [](const absl::Status& status, const std::string& text) {
        EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
        EXPECT_EQ(std::string(status.message()), text);
      };
      const int n = group.size();
      const std::string of = " in a group of " + std::to_string(n);
      float data[64] = {};
      refused(group.AllReduce(data, 4, DataType::kInt32, ReduceOp::kAdasum, Soon()),
              "Adasum of int32: it is of floating point alone");
      refused(group.AllReduce(data, 4, DataType::kBool, ReduceOp::kMean, Soon()),
              "there is no mean of bools");
      refused(group.AllReduce(nullptr, 4, kFloat, kSum, Soon()),
              "no memory for an all-reduce of 16 bytes");
      refused(group.AllReduce(data, std::numeric_limits<size_t>::max(), kFloat, kSum, Soon()),
              "the elements overflow");
      refused(group.Broadcast(data, 4, n, Soon()), "root " + std::to_string(n) + of);
      refused(group.Broadcast(data, 4, -1, Soon()), "root -1" + of);
      const std::vector<size_t> few(static_cast<size_t>(n) - 1, 1), right(few.size() + 1, 4);
      const std::string count = std::to_string(n - 1);
      refused(group.ReduceScatter(data, few, data + 32, kFloat, kSum, Soon()),
              count + " counts" + of);
      refused(group.AllGatherV(data, few, data + 32, Soon()), count + " sizes" + of);
      refused(group.AllToAllV(data, few, data + 32, right, Soon()), count + " sizes to send" + of);
      std::vector<size_t> other = right;
      other[static_cast<size_t>(group.rank())] = 5;
      refused(group.AllToAllV(data, right, data + 32, other, Soon()),
              "rank " + std::to_string(group.rank()) + " sends 4 bytes to itself and receives 5");
      refused(group.Send(data, 4, n, Soon()), "send to rank " + std::to_string(n) + of);
      refused(group.Receive(data, 4, group.rank(), Soon()),
              "receive from rank " + std::to_string(group.rank()) + ", which is this rank itself");
      return group.Barrier(Soon());
    });
    for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
  }
}

}  // namespace
}  // namespace tutti::comm
