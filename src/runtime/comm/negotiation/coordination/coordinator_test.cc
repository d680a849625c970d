// The decisions, with ranks, messages and time by hand.
// Covers: coordinator_end.cc, coordinator_release.cc, tensor_table.cc, stall_inspector.cc, fuse.cc.
#include "runtime/comm/negotiation/coordination/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "runtime/comm/negotiation/coordination/arbitrary_ranks.h"

namespace tutti::comm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

absl::Duration AtMilliseconds(double milliseconds) { return absl::Milliseconds(milliseconds); }

Request Sum(const std::string& name, std::vector<int64_t> shape = {4}) {
  Request request;
  request.kind = Kind::kAllReduce;
  request.name = name;
  request.parts = {{DataType::kFloat32, std::move(shape)}};
  return request;
}
Request Plain(Kind kind, const std::string& name) {
  Request request;
  request.kind = kind;
  request.name = name;
  return request;
}

// The ranks as the coordinator sees them; they execute what they are told at once, unless told to
// hold.
class World {
 public:
  explicit World(CoordinatorOptions options) : size_(options.size), coordinator_(options) {}
  explicit World(int size) : World(CoordinatorOptions{.size = size}) {}

  void Announce(int rank, const Request& request, std::vector<int64_t> rows = {}) {
    Say(rank, {.announcements = {{0, request, std::move(rows)}}});
  }
  void AnnounceId(int rank, uint32_t id, std::vector<int64_t> rows = {}) {
    Say(rank, {.announcements = {{id, {}, std::move(rows)}}});
  }
  void AnnounceAll(const Request& request) {
    for (int rank = 0; rank < size_; ++rank) Announce(rank, request);
  }
  void Leave(int rank) { Say(rank, {.leaves = true}); }
  void Tick(absl::Duration now, std::vector<absl::Duration> silence = {}) {
    now_ = now;
    coordinator_.OnTick(now, silence);
    Carry();
  }
  void Hold() { held_ = true; }
  void FinishAll() {
    held_ = false;
    for (int rank = 0; rank < size_; ++rank) Say(rank, {});
  }

  // "a+b" for what is fused, "!x" for an error, in the order told to `rank`; forgets them.
  std::vector<std::string> TakeResponses(int rank) {
    std::vector<std::string> texts;
    for (const Response& response : responses_[rank]) {
      std::string text;
      for (const Unit& unit : response.units) {
        const std::string name = unit.full ? unit.request.name : names_[unit.id];
        if (unit.id != 0) names_[unit.id] = name;
        text += (text.empty() ? "" : "+") +
                (unit.code == absl::StatusCode::kOk ? "" : "!" + unit.error + ": ") + name;
        if (unit.code == absl::StatusCode::kOk && unit.full) ids_[name] = unit.id;
      }
      texts.push_back(text);
    }
    last_[rank] = std::exchange(responses_[rank], {});
    return texts;
  }
  const std::vector<Response>& Last(int rank) { return last_[rank]; }
  uint32_t IdOf(const std::string& name) { return ids_[name]; }
  Orders& orders(int rank) { return orders_[rank]; }
  Coordinator& coordinator() { return coordinator_; }
  absl::Duration now_ = AtMilliseconds(0);

 private:
  void Say(int rank, Report report) {
    report.executed = held_ ? executed_[rank] : told_[rank];
    executed_[rank] = report.executed;
    coordinator_.OnReport(rank, report, now_);
    Carry();
  }
  // Through the codec, as they travel.
  void Carry() {
    for (auto& [rank, said] : coordinator_.TakeOutgoing()) {
      const Orders orders = *ReadOrders(Write(said));
      told_[rank] += orders.responses.size();
      responses_[rank].insert(responses_[rank].end(), orders.responses.begin(),
                              orders.responses.end());
      Orders& all = orders_[rank];
      all.unknown.insert(all.unknown.end(), orders.unknown.begin(), orders.unknown.end());
      all.stalls.insert(all.stalls.end(), orders.stalls.begin(), orders.stalls.end());
      if (orders.end.has_value()) all.end = orders.end;
      all.leave_ack = all.leave_ack || orders.leave_ack;
    }
  }

  const int size_;
  Coordinator coordinator_;
  bool held_ = false;
  std::map<int, std::vector<Response>> responses_, last_;
  std::map<int, Orders> orders_;
  std::map<int, uint64_t> told_, executed_;
  std::map<uint32_t, std::string> names_;
  std::map<std::string, uint32_t> ids_;
};

TEST(CoordinatorTest, ATensorIsReleasedToAllWhenTheLastHasIt) {
  World world(3);
  world.Announce(1, Sum("a"));
  world.Announce(2, Sum("b"));
  world.Announce(0, Sum("a"));
  EXPECT_THAT(world.TakeResponses(0), IsEmpty());
  world.Announce(2, Sum("a"));
  for (int rank = 0; rank < 3; ++rank) EXPECT_THAT(world.TakeResponses(rank), ElementsAre("a"));
}

TEST(CoordinatorTest, AllRanksAreToldTheSameOrderWhateverTheirs) {
  constexpr int kRanks = 4, kTensors = 300;
  std::mt19937 random(7);
  World world(kRanks);
  std::vector<std::vector<int>> order(kRanks);
  for (auto& one : order) {
    for (int i = 0; i < kTensors; ++i) one.push_back(i);
    std::shuffle(one.begin(), one.end(), random);
  }
  for (int i = 0; i < kTensors; ++i) {
    for (int rank = 0; rank < kRanks; ++rank)
      world.Announce(rank, Sum(std::to_string(order[rank][i])));
  }
  world.FinishAll();
  world.Tick(AtMilliseconds(5));
  std::string first = testing::PrintToString(world.TakeResponses(0));
  size_t names = 0;
  for (const Response& response : world.Last(0)) names += response.units.size();
  EXPECT_EQ(names, kTensors);
  for (int rank = 1; rank < kRanks; ++rank)
    EXPECT_EQ(testing::PrintToString(world.TakeResponses(rank)), first);
}

TEST(CoordinatorTest, TheSecondTimeANumberIsEnough) {
  World world(2);
  world.AnnounceAll(Sum("a"));
  EXPECT_THAT(world.TakeResponses(1), ElementsAre("a"));
  EXPECT_TRUE(world.Last(1)[0].units[0].full);
  const uint32_t id = world.IdOf("a");
  ASSERT_NE(id, 0u);
  world.AnnounceId(0, id);
  world.AnnounceId(1, id);
  EXPECT_THAT(world.TakeResponses(1), ElementsAre("a"));
  EXPECT_FALSE(world.Last(1)[0].units[0].full);
}

TEST(CoordinatorTest, WhatOneSaysInFullIsSaidInFullToAll) {
  World world(2);
  world.AnnounceAll(Sum("a"));
  world.TakeResponses(0);
  world.AnnounceId(0, world.IdOf("a"));
  world.Announce(1, Sum("a"));
  EXPECT_THAT(world.TakeResponses(0), ElementsAre("a"));
  EXPECT_TRUE(world.Last(0)[0].units[0].full);
  EXPECT_EQ(world.Last(0)[0].units[0].id, world.IdOf("a"));
}

TEST(CoordinatorTest, ANumberThatIsForgottenIsAskedForInFull) {
  World world(CoordinatorOptions{.size = 2, .cache_capacity = 1});
  world.AnnounceAll(Sum("a"));
  world.TakeResponses(0);
  const uint32_t id = world.IdOf("a");
  world.AnnounceAll(Sum("b"));
  world.AnnounceId(0, id);
  EXPECT_THAT(world.orders(0).unknown, ElementsAre(id));
  world.Announce(0, Sum("a"));
  world.Announce(1, Sum("a"));
  world.TakeResponses(1);
  EXPECT_NE(world.IdOf("a"), id) << "a number is never given twice";
}

TEST(CoordinatorTest, ADifferentShapeAfterANumberIsAMismatchAndThenANewRequest) {
  World world(2);
  world.AnnounceAll(Sum("a", {4}));
  world.TakeResponses(0);
  const uint32_t id = world.IdOf("a");
  world.AnnounceId(0, id);
  world.Announce(1, Sum("a", {5}));
  EXPECT_THAT(world.TakeResponses(0), ElementsAre(HasSubstr("!tensor \"a\": rank 0 asks for")));
  world.AnnounceAll(Sum("a", {5}));
  EXPECT_THAT(world.TakeResponses(0), ElementsAre("a"));
  EXPECT_NE(world.IdOf("a"), id);
}

TEST(CoordinatorTest, WhoDiffersIsToldToAllThatWaitAndNothingElseFails) {
  World world(3);
  Request other = Sum("a", {2, 2});
  world.Announce(0, Sum("a"));
  world.Announce(1, Sum("b"));
  world.Announce(2, other);
  world.Announce(1, Sum("a"));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(world.TakeResponses(rank),
                ElementsAre("!tensor \"a\": rank 0 asks for an all-reduce (sum) of float32[4], but "
                            "rank 2 for an all-reduce (sum) of float32[2,2]: a"));
  }
  world.Announce(0, Sum("b"));
  world.Announce(2, Sum("b"));
  EXPECT_THAT(world.TakeResponses(1), ElementsAre("b"));
}

TEST(CoordinatorTest, EveryDifferenceIsFound) {
  const auto differs = [](const std::function<void(Request&)>& change, const std::string& text) {
    World world(2);
    Request first = Sum("a"), second = first;
    change(second);
    world.Announce(1, first);
    world.Announce(0, second);
    EXPECT_THAT(world.TakeResponses(1), ElementsAre(HasSubstr(text)));
  };
  differs([](Request& r) { r.parts[0].type = DataType::kInt64; }, "int64[4]");
  differs([](Request& r) { r.op = ReduceOp::kMax; }, "all-reduce (max)");
  differs([](Request& r) { r.prescale = 0.5; }, "scaled by 0.5 before");
  differs([](Request& r) { r.postscale = 2; }, "scaled by 2 after");
  differs([](Request& r) { r.kind = Kind::kBroadcast; }, "a broadcast from rank 0 of float32[4]");
  differs([](Request& r) { r.parts.push_back(r.parts[0]); }, "of 2 tensors");
  World world(2);
  Request broadcast = Sum("a");
  broadcast.kind = Kind::kBroadcast;
  world.Announce(0, broadcast);
  broadcast.root = 1;
  world.Announce(1, broadcast);
  EXPECT_THAT(world.TakeResponses(0), ElementsAre(HasSubstr("broadcast from rank 1")));
}

TEST(CoordinatorTest, AnAllGatherTellsTheRowsOfAllInRankOrder) {
  World world(3);
  Request gather = Sum("g", {0, 5});
  gather.kind = Kind::kAllGather;
  world.Announce(2, gather, {7});
  world.Announce(0, gather, {0});
  world.Announce(1, gather, {3});
  EXPECT_THAT(world.TakeResponses(1), ElementsAre("g"));
  EXPECT_THAT(world.Last(1)[0].units[0].rows, ElementsAre(0, 3, 7));
}

TEST(CoordinatorTest, ALoneTensorNeverWaitsAndLaterOnesFuseWhileItIsInFlight) {
  World world(2);
  world.Hold();
  world.AnnounceAll(Sum("a"));
  EXPECT_THAT(world.TakeResponses(0), ElementsAre("a"));
  world.AnnounceAll(Sum("b"));
  world.AnnounceAll(Sum("c"));
  EXPECT_THAT(world.TakeResponses(0), IsEmpty()) << "a is in flight, and no cycle time has passed";
  world.FinishAll();
  EXPECT_THAT(world.TakeResponses(0), ElementsAre("b+c"));
}

TEST(CoordinatorTest, NothingWaitsLongerThanTheCycleTime) {
  World world(2);
  world.Hold();
  world.AnnounceAll(Sum("a"));
  world.Tick(AtMilliseconds(10));
  world.AnnounceAll(Sum("b"));
  world.TakeResponses(0);
  EXPECT_EQ(world.coordinator().NextTick(), AtMilliseconds(11));
  world.Tick(AtMilliseconds(10.9));
  EXPECT_THAT(world.TakeResponses(0), IsEmpty());
  world.Tick(AtMilliseconds(11));
  EXPECT_THAT(world.TakeResponses(0), ElementsAre("b"));
}

TEST(CoordinatorTest, AFullBufferAndALargeTensorDoNotWait) {
  World world(CoordinatorOptions{.size = 1, .fusion_bytes = 64});
  world.Hold();
  world.AnnounceAll(Sum("a"));
  world.AnnounceAll(Sum("b"));
  world.AnnounceAll(Sum("c"));
  EXPECT_THAT(world.TakeResponses(0), ElementsAre("a"));
  world.AnnounceAll(Sum("d", {12}));
  EXPECT_THAT(world.TakeResponses(0), ElementsAre("b+c", "d")) << "80 bytes do not fit into 64";
  World large(1);
  large.Hold();
  large.AnnounceAll(Sum("a"));
  large.AnnounceAll(Sum("b", {1 << 20}));
  EXPECT_THAT(large.TakeResponses(0), ElementsAre("a", "b"));
}

TEST(CoordinatorTest, OnlyWhatIsAlikeIsFused) {
  World world(1);
  world.Hold();
  world.AnnounceAll(Sum("first"));
  Request max = Sum("max"), scaled = Sum("scaled"), adasum = Sum("adasum");
  max.op = ReduceOp::kMax;
  scaled.prescale = 2;
  Request half = Sum("half");
  half.parts[0].type = DataType::kFloat16;
  for (const Request& request : {Sum("a"), max, scaled, half, Sum("b")}) world.AnnounceAll(request);
  world.FinishAll();
  EXPECT_THAT(world.TakeResponses(0), ElementsAre("first", "a+half+b", "max", "scaled"))
      << "types are packed apart later";
  World other(1);
  adasum.op = ReduceOp::kAdasum;
  other.Hold();
  other.AnnounceAll(Sum("first"));
  other.AnnounceAll(Sum("a"));
  other.AnnounceAll(adasum);
  EXPECT_THAT(other.TakeResponses(0), ElementsAre("first", "a", "adasum"));
}

TEST(CoordinatorTest, WithoutFusionEveryTensorGoesByItself) {
  World world(CoordinatorOptions{.size = 1, .fusion_bytes = 0});
  world.Hold();
  for (const char* name : {"a", "b", "c"}) world.AnnounceAll(Sum(name));
  EXPECT_THAT(world.TakeResponses(0), ElementsAre("a", "b", "c"));
}

TEST(CoordinatorTest, JoinedRanksCountInAllReducesAndBarriers) {
  World world(3);
  world.Announce(1, Sum("a"));
  world.Announce(2, Plain(Kind::kJoin, "join"));
  world.Announce(0, Sum("a"));
  EXPECT_THAT(world.TakeResponses(2), ElementsAre("a")) << "in full, since it knows nothing of it";
  EXPECT_TRUE(world.Last(2)[0].units[0].full);
  world.Announce(0, Plain(Kind::kBarrier, "barrier"));
  world.Announce(1, Plain(Kind::kBarrier, "barrier"));
  EXPECT_THAT(world.TakeResponses(1), ElementsAre("a", "barrier"));
  world.Announce(0, Plain(Kind::kJoin, "join"));
  world.Announce(1, Plain(Kind::kJoin, "join"));
  world.TakeResponses(0);
  EXPECT_THAT(world.TakeResponses(2), ElementsAre("barrier", "join"));
  EXPECT_EQ(world.Last(2)[1].value, 1) << "the last to join";
  world.Announce(0, Sum("b"));
  world.Announce(1, Sum("b"));
  EXPECT_THAT(world.TakeResponses(0), IsEmpty()) << "nobody has joined any more";
}

TEST(CoordinatorTest, JoiningReleasesWhatWaitedForTheJoiner) {
  World world(2);
  world.Announce(0, Sum("a"));
  world.Announce(0, Sum("b"));
  world.Announce(1, Plain(Kind::kJoin, "join"));
  EXPECT_THAT(world.TakeResponses(0), ElementsAre("a+b"));
}

TEST(CoordinatorTest, WhatNeedsEveryRankFailsBesideAJoinedOne) {
  for (const Kind kind :
       {Kind::kAllGather, Kind::kBroadcast, Kind::kAllToAll, Kind::kReduceScatter}) {
    World world(2);
    Request request = Sum("x", {0, 2});
    request.kind = kind;
    world.Announce(0, Plain(Kind::kJoin, "join"));
    world.Announce(1, request,
                   kind == Kind::kAllGather ? std::vector<int64_t>{1} : std::vector<int64_t>{});
    EXPECT_THAT(world.TakeResponses(1), ElementsAre(HasSubstr("rank 0 has joined")));
    EXPECT_THAT(world.TakeResponses(0), IsEmpty());
  }
}

TEST(CoordinatorTest, WhoseJoinFailsHasNotJoined) {
  World world(2);
  world.Announce(0, Plain(Kind::kJoin, "join"));
  world.Announce(1, Sum("join"));
  EXPECT_THAT(world.TakeResponses(0), ElementsAre(HasSubstr("rank 0 asks for a join, but rank 1")));
  world.Announce(1, Sum("a"));
  world.TakeResponses(1);
  EXPECT_THAT(world.TakeResponses(0), IsEmpty()) << "it is waited for";
  world.Announce(0, Sum("a"));
  EXPECT_THAT(world.TakeResponses(0), ElementsAre("a"));
}

TEST(CoordinatorTest, NoProcessSetIsAddedOrRemovedFromWithinOne) {
  World world(2);
  Request add = Plain(Kind::kAddSet, "add");
  add.ranks = {0};
  world.AnnounceAll(add);
  world.TakeResponses(0);
  Request remove = Plain(Kind::kRemoveSet, "remove");
  remove.set = remove.root = 1;
  world.Announce(0, remove);
  EXPECT_THAT(world.TakeResponses(0), ElementsAre(HasSubstr("it makes no sense")));
  add.set = 1;
  add.ranks = {1};
  world.Announce(0, add);
  EXPECT_THAT(world.TakeResponses(0), ElementsAre(HasSubstr("it makes no sense")));
  Request inside = Sum("a");
  inside.set = 1;
  world.Announce(0, inside);
  EXPECT_THAT(world.TakeResponses(0), ElementsAre("a")) << "the set is still there";
}

TEST(CoordinatorTest, MoreRowsThanThereIsMemoryMakeNoSense) {
  World world(2);
  Request gather = Sum("g", {0, 4});
  gather.kind = Kind::kAllGather;
  for (const int64_t rows : {int64_t{-1}, INT64_MAX, int64_t{1} << 60}) {
    world.Announce(0, gather, {rows});
    EXPECT_THAT(world.TakeResponses(0), ElementsAre(HasSubstr("it makes no sense"))) << rows;
  }
}

TEST(CoordinatorTest, WhateverRanksAskForItFailsNowhereAndIsUnderstood) {
  int added = 0, removed = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    ArbitraryRanks ranks([&](uint32_t below) { return static_cast<uint32_t>(random()) % below; });
    for (int step = 0; step < 200; ++step) ASSERT_TRUE(ranks.Step()) << "seed " << seed;
    added += ranks.sets_added();
    removed += ranks.sets_removed();
  }
  EXPECT_GT(added, 100) << "or it tells little";
  EXPECT_GT(removed, 100);
}

TEST(CoordinatorTest, ProcessSetsAreIndependentAndToldToTheirRanksAlone) {
  World world(4);
  Request add = Plain(Kind::kAddSet, "add");
  add.ranks = {1, 3};
  world.AnnounceAll(add);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_THAT(world.TakeResponses(rank), ElementsAre("add"));
    EXPECT_EQ(world.Last(rank)[0].value, 1);
  }
  Request inside = Sum("a");
  inside.set = 1;
  world.Announce(0, Sum("a"));
  world.Announce(3, inside);
  world.Announce(1, inside);
  EXPECT_THAT(world.TakeResponses(1), ElementsAre("a"));
  EXPECT_THAT(world.TakeResponses(3), ElementsAre("a"));
  EXPECT_THAT(world.TakeResponses(0), IsEmpty());
  world.Announce(0, inside);
  EXPECT_THAT(world.TakeResponses(0),
              ElementsAre(HasSubstr("this rank is not in the process set")));
}

TEST(CoordinatorTest, ASetOfRanksIsAddedOnce) {
  World world(2);
  Request add = Plain(Kind::kAddSet, "add");
  add.ranks = {1};
  world.AnnounceAll(add);
  add.name = "again";
  world.AnnounceAll(add);
  EXPECT_THAT(world.TakeResponses(0),
              ElementsAre("add", HasSubstr("process set 1 has these ranks")));
  add.name = "world";
  add.ranks = {0, 1};
  world.AnnounceAll(add);
  EXPECT_THAT(world.TakeResponses(0), ElementsAre(HasSubstr("process set 0 has these ranks")));
  add.name = "none";
  add.ranks = {7};
  world.AnnounceAll(add);
  EXPECT_THAT(world.TakeResponses(1), testing::Contains(HasSubstr("not distinct ranks")));
}

TEST(CoordinatorTest, RemovingASetFailsWhatIsPendingInIt) {
  World world(2);
  Request add = Plain(Kind::kAddSet, "add");
  add.ranks = {1};
  world.AnnounceAll(add);
  add.name = "other";
  add.ranks = {0};
  world.AnnounceAll(add);
  Request inside = Sum("a");
  inside.set = 1;
  world.Announce(1, inside);
  Request remove = Plain(Kind::kRemoveSet, "remove");
  remove.root = 1;
  world.AnnounceAll(remove);
  EXPECT_THAT(world.TakeResponses(1), ElementsAre("add", "other", "a", "remove"));
  world.Announce(1, inside);
  EXPECT_THAT(world.TakeResponses(1), ElementsAre(HasSubstr("there is no such process set")));
}

TEST(CoordinatorTest, ASetWithoutRankZeroFusesByWhatItsFirstRankHasExecuted) {
  World world(3);
  Request add = Plain(Kind::kAddSet, "add");
  add.ranks = {1, 2};
  world.AnnounceAll(add);
  world.FinishAll();
  world.TakeResponses(1);
  world.Hold();
  const auto announce = [&](const std::string& name) {
    Request request = Sum(name);
    request.set = 1;
    world.Announce(1, request);
    world.Announce(2, request);
  };
  for (const char* name : {"a", "b", "c"}) announce(name);
  EXPECT_THAT(world.TakeResponses(1), ElementsAre("a"));
  world.FinishAll();
  EXPECT_THAT(world.TakeResponses(1), ElementsAre("b+c"));
}

TEST(CoordinatorTest, WhoLeavesFailsWhatNeedsItAndNothingElse) {
  World world(3);
  Request add = Plain(Kind::kAddSet, "add");
  add.ranks = {0, 1};
  world.AnnounceAll(add);
  for (int rank = 0; rank < 3; ++rank) world.TakeResponses(rank);
  world.Announce(0, Sum("a"));
  world.Announce(2, Sum("b"));
  world.Leave(2);
  EXPECT_TRUE(world.orders(2).leave_ack);
  EXPECT_THAT(world.TakeResponses(0), ElementsAre("!tensor \"a\": rank 2 has shut down: a"));
  EXPECT_EQ(world.Last(0)[0].units[0].blamed, 2);
  EXPECT_THAT(world.TakeResponses(2), IsEmpty()) << "it has dropped what it had";
  world.Announce(1, Sum("b"));
  EXPECT_THAT(world.TakeResponses(1), ElementsAre(HasSubstr("rank 2 has shut down")));
  Request inside = Sum("c");
  inside.set = 1;
  world.Announce(0, inside);
  world.Announce(1, inside);
  EXPECT_THAT(world.TakeResponses(1), ElementsAre("c"));
}

TEST(CoordinatorTest, RankZeroLeavingEndsItForAll) {
  World world(2);
  world.Announce(1, Sum("a"));
  world.Leave(0);
  ASSERT_TRUE(world.orders(1).end.has_value());
  EXPECT_EQ(world.orders(1).end->text, "rank 0 has shut down");
  EXPECT_TRUE(world.orders(0).leave_ack);
}

TEST(CoordinatorTest, AStallIsReportedWithWhoIsMissedAndForHowLong) {
  World world(CoordinatorOptions{.size = 4, .stall = {.warning = absl::Seconds(10)}});
  world.Announce(0, Sum("a"));
  world.Announce(2, Sum("a"));
  world.Tick(absl::Seconds(9));
  EXPECT_THAT(world.orders(1).stalls, IsEmpty());
  world.Tick(absl::Seconds(13));
  for (int rank = 0; rank < 4; ++rank) {
    ASSERT_EQ(world.orders(rank).stalls.size(), 1u);
    EXPECT_EQ(world.orders(rank).stalls[0].ToString(),
              "tensor \"a\" has waited 13s for ranks 1, 3");
  }
  world.Tick(absl::Seconds(18));
  EXPECT_EQ(world.orders(0).stalls.size(), 1u) << "not again at once";
  world.Tick(absl::Seconds(24));
  EXPECT_EQ(world.orders(0).stalls.size(), 2u);
}

TEST(CoordinatorTest, AStallThatLastsEndsItForAllWhenAskedTo) {
  World world(CoordinatorOptions{.size = 2, .stall = {.shutdown = absl::Seconds(20)}});
  world.Announce(0, Sum("a"));
  world.Tick(absl::Seconds(19));
  EXPECT_FALSE(world.orders(0).end.has_value());
  world.Tick(absl::Seconds(21));
  ASSERT_TRUE(world.orders(0).end.has_value());
  EXPECT_EQ(world.orders(0).end->text, "tensor \"a\" has waited 21s for rank 1");
  EXPECT_EQ(world.orders(0).end->blamed, 1);
}

TEST(CoordinatorTest, ASilentRankIsReportedAtHalfThePeerTimeoutWithWhatWaitsForIt) {
  World world(CoordinatorOptions{.size = 3, .stall = {.peer_timeout = absl::Seconds(4)}});
  world.Hold();
  world.AnnounceAll(Sum("running"));
  world.Announce(0, Sum("pending"));
  world.Announce(2, Sum("other"));
  const auto silent = [](double seconds) {
    return std::vector<absl::Duration>{absl::ZeroDuration(), absl::ZeroDuration(),
                                       absl::Seconds(seconds)};
  };
  world.Tick(absl::Seconds(1), silent(1.9));
  EXPECT_THAT(world.orders(0).stalls, IsEmpty());
  world.Tick(absl::Seconds(2), silent(2.4));
  std::vector<std::string> tensors;
  for (const Stall& stall : world.orders(0).stalls) {
    EXPECT_EQ(stall.silent, 2);
    tensors.push_back(stall.tensor);
  }
  EXPECT_THAT(tensors, ElementsAre("pending", "running"));
  EXPECT_THAT(world.orders(0).stalls[0].ToString(),
              HasSubstr("for rank 2, of which nothing has been heard for 2.4s"));
  world.Tick(absl::Seconds(3), silent(3.4));
  EXPECT_EQ(world.orders(0).stalls.size(), 2u) << "said once";
}

TEST(CoordinatorTest, NothingIsToBeDoneWhenNothingIsOutstanding) {
  World world(2);
  EXPECT_EQ(world.coordinator().NextTick(), absl::InfiniteDuration());
  world.AnnounceAll(Sum("a"));
  world.FinishAll();
  EXPECT_EQ(world.coordinator().NextTick(), absl::InfiniteDuration());
  EXPECT_EQ(world.coordinator().executed_bytes(), 16u);
}

TEST(CoordinatorTest, NonsenseIsRefusedOrIgnored) {
  World world(2);
  world.AnnounceId(0, 99);
  EXPECT_THAT(world.orders(0).unknown, ElementsAre(99u));
  Request gather = Sum("g", {0, 5});
  gather.kind = Kind::kAllGather;
  world.Announce(0, gather, {1, 2, 3});
  EXPECT_THAT(world.TakeResponses(0), ElementsAre(HasSubstr("it makes no sense")));
  world.Announce(0, Sum("a"));
  world.Announce(0, Sum("a"));
  EXPECT_THAT(world.TakeResponses(0), IsEmpty()) << "one rank twice is not two ranks";
}

}  // namespace
}  // namespace tutti::comm
