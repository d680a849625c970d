#include "spec/types/node_state.h"

#include <gmock/gmock.h>

namespace tutti::spec {
namespace {

TEST(NodeState, HasAWordForEachOfSlurms) {
  EXPECT_EQ(StateOfSlurmNode("IDLE"), "idle");
  EXPECT_EQ(StateOfSlurmNode("MIXED+CLOUD"), "running");
  EXPECT_EQ(StateOfSlurmNode("IDLE+CLOUD+POWERED_DOWN"), "off");
  EXPECT_EQ(StateOfSlurmNode("ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP"), "preparing");
  EXPECT_EQ(StateOfSlurmNode("IDLE+CLOUD+POWERING_DOWN"), "leaving");
  EXPECT_EQ(StateOfSlurmNode("ALLOCATED+DRAIN"), "leaving");
  EXPECT_EQ(StateOfSlurmNode("IDLE+DRAIN"), "unusable");
  EXPECT_EQ(StateOfSlurmNode("DOWN+CLOUD+POWERED_DOWN+NOT_RESPONDING"), "unusable");
  EXPECT_EQ(StateOfSlurmNode("IDLE+NOT_RESPONDING"), "unusable");
  EXPECT_EQ(StateOfSlurmNode("IDLE+MAINTENANCE"), "unusable");
}

TEST(NodeState, HasTheSameWordHoweverSlurmSpellsIts) {
  EXPECT_EQ(StateOfSlurmNode("idle"), "idle");
  EXPECT_EQ(StateOfSlurmNode("mixed-"), "running");
  EXPECT_EQ(StateOfSlurmNode("allocated+"), "running");
  EXPECT_EQ(StateOfSlurmNode("idle~"), "off");
  EXPECT_EQ(StateOfSlurmNode("allocated#"), "preparing");
  EXPECT_EQ(StateOfSlurmNode("idle%"), "leaving");
  EXPECT_EQ(StateOfSlurmNode("draining"), "leaving");
  EXPECT_EQ(StateOfSlurmNode("drained"), "unusable");
  EXPECT_EQ(StateOfSlurmNode("down*"), "unusable");
  EXPECT_EQ(StateOfSlurmNode("idle*"), "unusable");
  EXPECT_EQ(StateOfSlurmNode("maint"), "unusable");
  EXPECT_EQ(StateOfSlurmNode(""), "idle");
}

}  // namespace
}  // namespace tutti::spec
