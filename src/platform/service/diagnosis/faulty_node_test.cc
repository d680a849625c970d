#include "platform/service/diagnosis/faulty_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NodeFaultTest, KnowsTheWordsOfADiskThatIsFullOrBroken) {
  EXPECT_TRUE(SpeaksOfABrokenDisk("make /s/j.1/work: No space left on device"));
  EXPECT_TRUE(SpeaksOfABrokenDisk("uv: failed to copy: Input/output error (os error 5)"));
  EXPECT_TRUE(SpeaksOfABrokenDisk("open /s/j.1/hosts: Read-only file system"));
  EXPECT_TRUE(SpeaksOfABrokenDisk("write /var/lib/containers/x: no space left on device"));
  EXPECT_FALSE(SpeaksOfABrokenDisk("open /data/x: No such file or directory"));
  EXPECT_FALSE(SpeaksOfABrokenDisk("write /s/x: Disk quota exceeded"));
}

TEST(NodeFaultTest, NamesNodesThatWereLostOrCouldNotPrepare) {
  const GangEnd end{
      .nodes = {
          {.node = "n1", .ok = false, .reason = "killed", .lost = true},
          {.node = "n2"},
          {.node = "n3", .ok = false, .reason = "sync /s: Input/output error", .disk_fault = true},
          {.node = "n4", .ok = false, .reason = "no such image"}}};
  const auto faults = NodeFaultsOf(end);
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0].what, "its launcher was lost");
  EXPECT_EQ(faults[1].what, "it could not prepare: sync /s: Input/output error");
  EXPECT_THAT(NodesToAvoid(end), ElementsAre("n1", "n3"));
}

TEST(NodeFaultTest, AWholeGangThatFoundItsNodesToBeIllHadBetterHaveOthers) {
  const NodeEnd ill{
      .node = "n1", .ok = false, .reason = "it is ill: disk: full", .ill = "disk: full"};
  EXPECT_EQ(NodeFaultsOf({.nodes = {ill}}).front().what, "disk: full");
  EXPECT_THAT(NodesToAvoid({.nodes = {ill, ill}}), ElementsAre("n1", "n1"));
}

TEST(NodeFaultTest, AWholeGangThatIsLostSaysNothingOfANode) {
  const NodeEnd lost{.node = "n1", .ok = false, .lost = true};
  EXPECT_THAT(NodesToAvoid({.nodes = {lost, lost}}), IsEmpty());
  EXPECT_THAT(NodesToAvoid({.nodes = {lost}}), ElementsAre("n1"));
}

}  // namespace
}  // namespace tutti::service
