// What a rank 0 that errs or lies may tell: it ends the negotiation, and nothing else happens.
// Covers: check_response.cc.
#include "runtime/comm/negotiation/execution/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <system_error>

#include "base/test_patience.h"
#include "runtime/comm/group/group_test_support.h"
#include "runtime/comm/lost_rank.h"

namespace tutti::comm {
namespace {

Request NamedRequest(Kind kind) {
  Request request;
  request.kind = kind;
  request.name = kind == Kind::kJoin ? "join" : "a";
  const bool counts = kind < Kind::kBarrier;
  const int64_t rows = kind == Kind::kAllGather || kind == Kind::kAllToAll ? 0 : 2;
  if (counts) request.parts = {{DataType::kFloat32, {rows}}};
  return request;
}

Response Of(const Request& request) {
  Response response;
  Unit& unit = response.units.emplace_back();
  unit.full = true;
  unit.request = request;
  return response;
}

// Runs it in a group of one, which has submitted `own`, if anything. What ended the negotiation.
absl::Status EndOf(Response response, const Request* own = nullptr, bool joined = false,
                   const Allocate& allocate = nullptr) {
  auto group = JoinGroup(OptionsFor(1, GroupOptions::Transport::kAuto)[0]);
  EXPECT_TRUE(group.ok());
  static const float input[2] = {1, 2};
  absl::Status ended;
  Executor::Job job{std::move(response), {}, joined};
  job.tasks.resize(job.response.units.size());
  if (own != nullptr) {
    job.tasks[0] = std::make_unique<Task>();
    job.tasks[0]->submission.request = *own;
    job.tasks[0]->submission.rows = {2};
    job.tasks[0]->submission.inputs = {input};
    job.tasks[0]->submission.splits = {2};
    job.tasks[0]->submission.allocate = allocate;
    job.tasks[0]->operation = std::make_shared<Operation>();
  }
  TimelineSlot timeline;
  Executor executor(*std::move(group), base::Patient(absl::Seconds(10)), &timeline,
                    {.on_executed = [] {},
                     .on_failed = [&](const absl::Status& error) { ended = error; },
                     .await_judgement = [](absl::Duration) { return absl::OkStatus(); }});
  executor.Push(std::move(job));
  EXPECT_TRUE(executor.Drain(Soon()));
  executor.Leave();
  return ended;
}

TEST(ExecutorTest, OnlyAJoinedRankRunsWhatItHasNotAskedFor) {
  for (int i = 0; i <= static_cast<int>(Kind::kRemoveSet); ++i) {
    const Kind kind = static_cast<Kind>(i);
    Response response = Of(NamedRequest(kind));
    if (kind == Kind::kAllGather) response.units[0].rows = {0};
    EXPECT_EQ(LostRank(EndOf(response)), 0) << NameOf(kind);
    const bool goes_on = kind == Kind::kAllReduce || kind == Kind::kBarrier;
    EXPECT_EQ(EndOf(response, nullptr, true).ok(), goes_on) << NameOf(kind);
  }
}

TEST(ExecutorTest, RowsThatAreNotThoseOfThisRankAreNotRead) {
  const Request gather = NamedRequest(Kind::kAllGather);
  Response response = Of(gather);
  for (const std::vector<int64_t>& rows :
       std::vector<std::vector<int64_t>>{{}, {3}, {-1}, {INT64_MAX}, {2, 2}}) {
    response.units[0].rows = rows;
    EXPECT_FALSE(EndOf(response, &gather).ok());
  }
  response.units[0].rows = {2};
  EXPECT_EQ(EndOf(response, &gather), absl::OkStatus());
}

TEST(ExecutorTest, AThreadThatIsNotThereEndsTheNegotiationAndNotTheProcess) {
  Request gather = NamedRequest(Kind::kAllGather);
  Response response = Of(gather);
  response.units[0].rows = {2};
  const Allocate allocate = [](size_t, const std::vector<int64_t>&, size_t) -> void* {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  };
  const absl::Status status = EndOf(response, &gather, false, allocate);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

TEST(ExecutorTest, WhatIsInNoProcessSetOrChangesNoneEndsIt) {
  const Request sum = NamedRequest(Kind::kAllReduce), remove = NamedRequest(Kind::kRemoveSet);
  Response elsewhere = Of(sum);
  elsewhere.set = 7;
  EXPECT_FALSE(EndOf(elsewhere, &sum).ok());
  EXPECT_FALSE(EndOf(Response()).ok());
  EXPECT_FALSE(EndOf(Of(remove), &remove).ok()) << "the world stays";
  Request add = NamedRequest(Kind::kAddSet);
  add.ranks = {0};
  for (const int64_t number : {int64_t{0}, int64_t{-1}, int64_t{1} << 40}) {
    Response response = Of(add);
    response.value = number;
    EXPECT_FALSE(EndOf(response, &add).ok()) << number;
  }
}

TEST(ExecutorTest, WhatDoesNotFitTogetherIsNotRunAsOne) {
  const Request scatter = NamedRequest(Kind::kReduceScatter), sum = NamedRequest(Kind::kAllReduce);
  Response response = Of(sum);
  response.units.push_back(response.units[0]);
  response.units[1].request.op = ReduceOp::kMax;
  EXPECT_FALSE(EndOf(response, &sum, true).ok());
  EXPECT_FALSE(EndOf(Of(scatter), &sum).ok()) << "another request of that name";
  Request rootless = NamedRequest(Kind::kBroadcast);
  rootless.root = 3;
  EXPECT_FALSE(EndOf(Of(rootless), &rootless).ok());
}

}  // namespace
}  // namespace tutti::comm
