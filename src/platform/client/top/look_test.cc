#include "platform/client/top/look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Key> KeysIn(std::string bytes) { return TakeKeys(bytes, true); }

TEST(TakeKeysTest, KnowsWhatTerminalsSend) {
  EXPECT_THAT(KeysIn("j\x1b[A\x1bOBkq"),
              ElementsAre(Key::kDown, Key::kUp, Key::kDown, Key::kUp, Key::kQuit));
  EXPECT_THAT(KeysIn("\r\n\x1b[C"), ElementsAre(Key::kEnter, Key::kEnter, Key::kEnter));
  EXPECT_THAT(
      KeysIn("\x1b[5~\x1b[6~gG\x1b[H\x1b[F"),
      ElementsAre(Key::kPageUp, Key::kPageDown, Key::kFirst, Key::kLast, Key::kFirst, Key::kLast));
  EXPECT_THAT(KeysIn("s\x1b"), ElementsAre(Key::kOrder, Key::kBack));
}

TEST(TakeKeysTest, PassesOverWhatMeansNothing) {
  EXPECT_THAT(KeysIn("x\x1b[200~ö\x1b[1;5P\x1b[<0;1;2M\xff\x1bOzj"), ElementsAre(Key::kDown));
}

TEST(TakeKeysTest, WaitsForTheRestOfASequence) {
  std::string bytes = "j\x1b";
  EXPECT_THAT(TakeKeys(bytes, false), ElementsAre(Key::kDown));
  EXPECT_EQ(bytes, "\x1b");
  bytes += "[";
  EXPECT_THAT(TakeKeys(bytes, false), IsEmpty());
  bytes += "B";
  EXPECT_THAT(TakeKeys(bytes, false), ElementsAre(Key::kDown));
  EXPECT_EQ(bytes, "");
  bytes = "\x1b";
  EXPECT_THAT(TakeKeys(bytes, true), ElementsAre(Key::kBack));
  EXPECT_EQ(bytes, "");
  bytes = "\x1b[1;";
  EXPECT_THAT(TakeKeys(bytes, true), IsEmpty());
  EXPECT_EQ(bytes, "");
}

NodeUsageView NodeThatUses(const std::string& name, double cores, double memory) {
  NodeUsageView node;
  node.name = name;
  node.recent = {.cpu = {cores}, .memory = {memory}};
  node.whole = {.cpu = {cores}};
  return node;
}

JobView JobInState(const std::string& id, const std::string& state, int sequence) {
  JobView job;
  job.id = id;
  job.state = state;
  job.sequence = sequence;
  return job;
}

LiveView AllToSort() {
  LiveView all{.time = absl::FromUnixSeconds(100)};
  all.jobs = {JobInState("c", "Queued", 1), JobInState("b", "Running", 2),
              JobInState("d", "Preparing", 3), JobInState("a", "Running", 4)};
  all.usage["a"] = {all.time, {.live = true, .nodes = {NodeThatUses("n2", 1, 8)}}};
  all.usage["b"] = {all.time, {.live = true, .nodes = {NodeThatUses("n1", 2, 4)}}};
  all.nodes.nodes = {{.name = "n3"}, {.name = "n2"}, {.name = "n1"}};
  all.nodes.nodes[1].jobs = {"a"};
  all.nodes.nodes[2].jobs = {"b"};
  return all;
}

std::vector<std::string> JobsIn(Order order) {
  std::vector<std::string> ids;
  for (const JobView& job : InOrder(AllToSort(), order)) ids.push_back(job.id);
  return ids;
}

std::vector<std::string> NodesIn(Order order) {
  std::vector<std::string> names;
  for (const NodeView& node : NodesInOrder(AllToSort(), order)) names.push_back(node.name);
  return names;
}

TEST(OrderTest, SortsJobsAndNodes) {
  EXPECT_THAT(JobsIn(Order::kState), ElementsAre("a", "b", "d", "c"));
  EXPECT_THAT(JobsIn(Order::kCores), ElementsAre("b", "a", "d", "c"));
  EXPECT_THAT(JobsIn(Order::kMemory), ElementsAre("a", "b", "d", "c"));
  EXPECT_THAT(JobsIn(Order::kName), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(NodesIn(Order::kState), ElementsAre("n3", "n2", "n1"));
  EXPECT_THAT(NodesIn(Order::kCores), ElementsAre("n1", "n2", "n3"));
  EXPECT_THAT(NodesIn(Order::kMemory), ElementsAre("n2", "n1", "n3"));
  EXPECT_THAT(NodesIn(Order::kName), ElementsAre("n1", "n2", "n3"));
}

TEST(OrderTest, SortsRanksWithinTheirNodes) {
  JobUsageView usage{.live = true, .nodes = {NodeThatUses("n1", 1, 1), NodeThatUses("n2", 5, 5)}};
  for (int rank = 0; rank < 3; ++rank) {
    usage.nodes[1].ranks.push_back({.rank = rank, .recent = {.cpu = {rank == 1 ? 9.0 : rank}}});
  }
  const JobUsageView sorted = RanksInOrder(usage, Order::kCores);
  EXPECT_EQ(sorted.nodes[0].name, "n2");
  ASSERT_EQ(sorted.nodes[0].ranks.size(), 3);
  EXPECT_EQ(sorted.nodes[0].ranks[0].rank, 1);
  EXPECT_EQ(sorted.nodes[0].ranks[1].rank, 2);
  EXPECT_EQ(sorted.nodes[0].ranks[2].rank, 0);
  EXPECT_EQ(RanksInOrder(usage, Order::kName).nodes[0].name, "n1");
}

Look LookAfter(std::vector<Key> keys, const LiveView& view, Look look = {}) {
  for (const Key key : keys) look = Turn(look, key, view, 2);
  return look;
}

TEST(TurnTest, MovesAmongJobsAndStopsAtTheEnds) {
  EXPECT_EQ(LookAfter({Key::kDown}, AllToSort()).selected, "b");
  EXPECT_EQ(LookAfter({Key::kDown, Key::kUp, Key::kUp}, AllToSort()).selected, "a");
  EXPECT_EQ(LookAfter({Key::kPageDown}, AllToSort()).selected, "d");
  EXPECT_EQ(LookAfter({Key::kPageDown, Key::kPageDown}, AllToSort()).selected, "c");
  EXPECT_EQ(LookAfter({Key::kLast}, AllToSort()).selected, "c");
  EXPECT_EQ(LookAfter({Key::kLast, Key::kPageUp}, AllToSort()).selected, "b");
  EXPECT_EQ(LookAfter({Key::kLast, Key::kFirst}, AllToSort()).selected, "a");
}

TEST(TurnTest, KeepsTheJobWhenTheOrderChanges) {
  const Look look = LookAfter({Key::kDown, Key::kOrder}, AllToSort());
  EXPECT_EQ(look.order, Order::kCores);
  EXPECT_EQ(look.selected, "b");
  EXPECT_EQ(LookAfter({Key::kDown}, AllToSort(), look).selected, "a");
  EXPECT_EQ(LookAfter({Key::kOrder, Key::kOrder, Key::kOrder, Key::kOrder}, AllToSort()).order,
            Order::kState);
}

TEST(TurnTest, OpensAJobAndGoesBackToIt) {
  const Look open = LookAfter({Key::kDown, Key::kEnter}, AllToSort());
  EXPECT_EQ(open.open, "b");
  LiveView one{.time = absl::FromUnixSeconds(100), .open = "b"};
  JobUsageView usage{.live = true, .nodes = {NodeThatUses("n1", 1, 1)}};
  usage.nodes[0].ranks = {{.rank = 0}, {.rank = 1}};
  one.usage["b"] = {one.time, usage};
  EXPECT_EQ(LookAfter({Key::kDown}, one, open).row, 1);
  EXPECT_EQ(LookAfter({Key::kLast}, one, open).row, 2);
  EXPECT_EQ(LookAfter({Key::kLast, Key::kDown}, one, open).row, 2);
  EXPECT_EQ(LookAfter({Key::kEnter}, one, open).open, "b");
  const Look back = LookAfter({Key::kLast, Key::kBack}, one, open);
  EXPECT_EQ(back.open, "");
  EXPECT_EQ(back.selected, "b");
  EXPECT_EQ(back.row, 0);
}

TEST(TurnTest, DoesNothingWhereThereIsNoJob) {
  for (const Key key : {Key::kUp, Key::kDown, Key::kEnter, Key::kBack, Key::kLast}) {
    const Look look = LookAfter({key}, {});
    EXPECT_EQ(look.open, "");
    EXPECT_EQ(look.selected, "");
  }
}

TEST(TurnTest, TakesTheFirstJobWhereTheSelectedOneHasGone) {
  EXPECT_EQ(LookAfter({Key::kDown}, AllToSort(), {.selected = "gone"}).selected, "b");
}

}  // namespace
}  // namespace tutti::client
