// Which transports ranks agree on, and groups over each of them.
#include "runtime/comm/transport/connect/route.h"

#include <gtest/gtest.h>

#include <numeric>
#include <utility>

#include "absl/time/clock.h"
#include "base/test_patience.h"
#include "runtime/comm/group/group_test_support.h"
#include "runtime/comm/transport/ucx_channel.h"

namespace tutti::comm {
namespace {

using Transport = GroupOptions::Transport;

Hello On(int rank, int node, Transport transport = Transport::kAuto) {
  Hello hello;
  hello.rank = rank;
  hello.node = node;
  hello.host = node == 0 ? "host a" : "host b";
  hello.transport = transport;
  return hello;
}

TEST(RouteTest, MemoryWithinANodeTcpBetweenNodesAndTcpWhereOneInsists) {
  EXPECT_EQ(RouteBetween(On(0, 0), On(1, 0))->kind, Route::Kind::kSharedMemory);
  EXPECT_EQ(RouteBetween(On(0, 0), On(1, 1))->kind, Route::Kind::kTcp);
  EXPECT_EQ(RouteBetween(On(0, 0, Transport::kTcp), On(1, 0))->kind, Route::Kind::kTcp);
}

TEST(RouteTest, WhatOneInsistsOnAndTheOtherDoesNotKnowOfIsAFault) {
  Hello encrypted = On(1, 1), striped = On(1, 1), equal = On(1, 1), checking = On(1, 1);
  encrypted.encrypt = true;
  striped.streams = 2;
  equal.deterministic = true;
  checking.check_calls = true;
  for (const Hello& other : {encrypted, striped, equal, checking, On(1, 1, Transport::kUcx),
                             On(1, 1, Transport::kSharedMemory)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(RouteBetween(On(0, 0), other).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(RouteBetween(other, On(0, 0)).status()));
  }
}

TEST(RouteTest, UcxWhereBothNodesHaveRdma) {
  Hello a = On(0, 0), b = On(1, 1), neighbour = On(2, 0);
  a.rdma = neighbour.rdma = true;
  EXPECT_EQ(RouteBetween(a, b)->kind, Route::Kind::kTcp);
  b.rdma = true;
  EXPECT_EQ(RouteBetween(a, b)->kind, Route::Kind::kUcx);
  EXPECT_EQ(RouteBetween(a, neighbour)->kind, Route::Kind::kSharedMemory);
}

TEST(RouteTest, UcxDoesNotEncrypt) {
  Hello a = On(0, 0, Transport::kUcx), b = On(1, 1, Transport::kUcx);
  EXPECT_EQ(RouteBetween(a, b)->kind, Route::Kind::kUcx);
  a.encrypt = b.encrypt = true;
  EXPECT_TRUE(absl::IsInvalidArgument(RouteBetween(a, b).status()));
}

TEST(RouteTest, AMeasuredNumberOfStreamsTakesThemAllFirst) {
  Hello a = On(0, 0), b = On(1, 1);
  a.streams = b.streams = 3;
  EXPECT_EQ(RouteBetween(a, b)->Connections(), 3);
  a.streams = b.streams = 0;
  EXPECT_GT(RouteBetween(a, b)->Connections(), 1);
}

// Every rank adds and gathers, small and large.
void ExpectThatAGroupWorks(const std::vector<GroupOptions>& options) {
  OnEveryRank(options, [&](int rank, absl::StatusOr<std::unique_ptr<Communicator>> group) {
    ASSERT_TRUE(group.ok()) << group.status();
    const int size = (*group)->size();
    for (const size_t count : {1, 1000, 700001}) {
      std::vector<int64_t> data(count);
      std::iota(data.begin(), data.end(), rank);
      const absl::Status status =
          (*group)->AllReduce(data.data(), count, DataType::kInt64, ReduceOp::kSum, Soon());
      ASSERT_TRUE(status.ok()) << status;
      for (size_t i = 0; i < count; i += 997) {
        ASSERT_EQ(data[i], size * static_cast<int64_t>(i) + size * (size - 1) / 2);
      }
    }
    EXPECT_TRUE((*group)->Barrier(Soon()).ok());
  });
}

std::vector<GroupOptions> Options(int size, const std::function<void(GroupOptions&)>& change) {
  std::vector<GroupOptions> options = OptionsFor(size, Transport::kAuto, 1);
  for (GroupOptions& one : options) change(one);
  return options;
}

TEST(RouteTest, AGroupOverSeveralStreams) {
  ExpectThatAGroupWorks(Options(3, [](GroupOptions& one) { one.tcp_streams = 3; }));
}

TEST(RouteTest, AGroupWhoseLinksMeasureHowManyStreamsTheyWant) {
  ExpectThatAGroupWorks(Options(3, [](GroupOptions& one) { one.tcp_streams = 0; }));
}

TEST(RouteTest, AGroupOverTls) {
  ExpectThatAGroupWorks(Options(3, [](GroupOptions& one) { one.encrypt = true; }));
}

TEST(RouteTest, AGroupOverSeveralTlsStreams) {
  ExpectThatAGroupWorks(Options(2, [](GroupOptions& one) {
    one.encrypt = true;
    one.tcp_streams = 2;
  }));
}

TEST(RouteTest, AGroupOverUcx) {
  if (!CheckUcx().ok()) GTEST_SKIP() << CheckUcx();
  ExpectThatAGroupWorks(Options(3, [](GroupOptions& one) { one.transport = Transport::kUcx; }));
}

TEST(RouteTest, ARankWithASettingThatTheOthersDoNotHaveIsAnErrorOnAll) {
  const std::pair<bool GroupOptions::*, std::string> settings[] = {
      {&GroupOptions::encrypt, "TUTTI_COMM_TLS"},
      {&GroupOptions::deterministic, "TUTTI_COMM_DETERMINISTIC"},
      {&GroupOptions::check_calls, "TUTTI_COMM_CHECK"}};
  for (const auto& [setting, name] : settings) {
    std::vector<GroupOptions> options = OptionsFor(3, Transport::kAuto, 1);
    options[1].*setting = true;
    const absl::Time start = absl::Now();
    OnEveryRank(options, [&](int, absl::StatusOr<std::unique_ptr<Communicator>> group) {
      EXPECT_TRUE(absl::IsInvalidArgument(group.status())) << group.status();
      EXPECT_EQ(std::string(group.status().message()),
                "ranks 0 and 1 differ in " + name + ": it must be the same on all ranks");
    });
    EXPECT_LT(absl::Now() - start, base::Patient(absl::Seconds(10))) << name;
  }
}

TEST(RouteTest, TlsWithoutATokenIsRefused) {
  OnEveryRank(Options(2,
                      [](GroupOptions& one) {
                        one.encrypt = true;
                        one.token.clear();
                      }),
              [](int, absl::StatusOr<std::unique_ptr<Communicator>> group) {
                EXPECT_TRUE(absl::IsInvalidArgument(group.status())) << group.status();
              });
}

}  // namespace
}  // namespace tutti::comm
