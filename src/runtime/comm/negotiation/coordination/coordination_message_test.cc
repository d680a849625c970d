// Covers: request.cc.
#include "runtime/comm/negotiation/coordination/coordination_message.h"

#include <gtest/gtest.h>

namespace tutti::comm {
namespace {

Report SomeReport() {
  Request request;
  request.kind = Kind::kReduceScatter;
  request.set = 3;
  request.name = "layer/weight:0";
  request.op = ReduceOp::kAdasum;
  request.prescale = 0.1;
  request.wire = Wire::kBFloat16;
  request.parts = {{DataType::kBool, {1, 2, 3}}, {DataType::kInt16, {}}};
  request.ranks = {0, 7};
  return {5, true, {{0, request, {4, 5}}, {17, {}, {9}}}};
}

Orders SomeOrders() {
  Orders orders;
  Response& response = orders.responses.emplace_back();
  response.value = -1;
  response.fusion_bytes = 99;
  Unit& unit = response.units.emplace_back();
  unit.full = true;
  unit.request = SomeReport().announcements[0].request;
  unit.rows = {1, 2};
  unit.code = absl::StatusCode::kInvalidArgument;
  unit.error = "no";
  unit.blamed = 2;
  orders.unknown = {3};
  orders.stalls.push_back({"t", 1, absl::Seconds(3), {1, 2}, -1, absl::ZeroDuration()});
  orders.end = End{absl::StatusCode::kCancelled, "over", 0};
  orders.leave_ack = true;
  return orders;
}

TEST(NegotiationMessageTest, WhatIsWrittenIsReadAsItWas) {
  const auto report = ReadReport(Write(SomeReport()));
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->announcements[0].request, SomeReport().announcements[0].request);
  EXPECT_EQ(report->announcements[1].id, 17u);
  EXPECT_EQ(report->announcements[1].rows, std::vector<int64_t>{9});
  EXPECT_TRUE(report->leaves);
  const auto orders = ReadOrders(Write(SomeOrders()));
  ASSERT_TRUE(orders.ok());
  EXPECT_EQ(Write(*orders), Write(SomeOrders()));
  EXPECT_EQ(orders->responses[0].units[0].blamed, 2);
  EXPECT_EQ(orders->stalls[0].silent, -1);
}

TEST(NegotiationMessageTest, WhatIsCutShortOrTooLongIsRefused) {
  const std::string report = Write(SomeReport()), orders = Write(SomeOrders());
  for (size_t length = 0; length < report.size(); ++length) {
    EXPECT_FALSE(ReadReport(report.substr(0, length)).ok());
  }
  for (size_t length = 0; length < orders.size(); ++length) {
    EXPECT_FALSE(ReadOrders(orders.substr(0, length)).ok());
  }
  EXPECT_FALSE(ReadReport(report + "x").ok());
}

TEST(NegotiationMessageTest, AnAnnouncementByNumberTakesFewBytes) {
  Report report;
  for (uint32_t id = 1; id <= 100; ++id) report.announcements.push_back({id, {}, {}});
  EXPECT_LT(Write(report).size(), 1000u);
}

TEST(RequestTest, ARequestIsToldInWords) {
  Request request = SomeReport().announcements[0].request;
  EXPECT_EQ(request.Describe(),
            "a reduce-scatter (Adasum) of 2 tensors: bool[1,2,3], int16[], scaled by 0.1 before, "
            "sent as bfloat16");
  request = {};
  request.kind = Kind::kAllGather;
  request.parts = {{DataType::kFloat16, {0, 7}}};
  EXPECT_EQ(request.Describe(), "an all-gather of float16[*,7]");
}

TEST(RequestTest, WhatMakesNoSenseByItselfIsRefused) {
  Request good;
  good.kind = Kind::kAllReduce;
  good.name = "x";
  good.parts = {{DataType::kFloat32, {2, 0, 3}}};
  EXPECT_TRUE(Check(good).ok());
  const auto bad = [&](const std::function<void(Request&)>& change) {
    Request request = good;
    change(request);
    EXPECT_TRUE(absl::IsInvalidArgument(Check(request))) << request.Describe();
  };
  bad([](Request& r) { r.name = ""; });
  bad([](Request& r) { r.name = std::string(kLongestName + 1, 'x'); });
  bad([](Request& r) { r.parts[0].shape = {-1}; });
  bad([](Request& r) { r.parts[0].shape = {int64_t{1} << 40, int64_t{1} << 40}; });
  bad([](Request& r) { r.parts[0].shape = {0, int64_t{1} << 62}; });
  bad([](Request& r) { r.parts[0].shape.assign(65, 1); });
  bad([](Request& r) {
    r.kind = Kind::kAllGather;
    r.parts[0].shape = {};
  });
  bad([](Request& r) {
    r.op = ReduceOp::kMean;
    r.parts[0].type = DataType::kBool;
  });
  bad([](Request& r) {
    r.op = ReduceOp::kAdasum;
    r.parts[0].type = DataType::kInt32;
  });
  bad([](Request& r) {
    r.op = ReduceOp::kAdasum;
    r.kind = Kind::kReduceScatter;
  });
}

}  // namespace
}  // namespace tutti::comm
