#include "platform/service/diagnosis/failure_kind.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "platform/service/diagnosis/diagnosis.h"

namespace tutti::service {
namespace {

FailureKind KindOfEnd(const GangEnd& end) {
  const Diagnosis diagnosis = Diagnose(end);
  EXPECT_FALSE(diagnosis.failures.empty());
  return diagnosis.failures.front().kind;
}

TEST(FailureKind, IsThatOfTheRankThatFailedFirst) {
  EXPECT_EQ(KindOfEnd({.exits = {{.rank = 0, .node = "n1", .code = 1}}}), FailureKind::kExitCode);
  EXPECT_EQ(KindOfEnd({.exits = {{.rank = 0, .node = "n1", .signal = 11}}}), FailureKind::kSignal);
  EXPECT_EQ(KindOfEnd({.exits = {{.rank = 0, .node = "n1", .signal = 9, .out_of_memory = true}}}),
            FailureKind::kOutOfMemory);
}

TEST(FailureKind, IsTheNodesIfThatWasLostOrIsIll) {
  EXPECT_EQ(KindOfEnd({.nodes = {{.node = "n1", .ok = false, .reason = "SIGKILL", .lost = true}}}),
            FailureKind::kNode);
  EXPECT_EQ(
      KindOfEnd({.nodes = {{.node = "n1", .ok = false, .reason = "I/O error", .ill = "disk"}}}),
      FailureKind::kNode);
  EXPECT_EQ(KindOfEnd({.nodes = {{.node = "n1", .ok = false, .reason = "gone", .lost = true}},
                       .verdict = "NODE_FAIL",
                       .lost = true}),
            FailureKind::kNode);
}

TEST(FailureKind, OfAFullDiskAndOfWhatIsNoNodesFaultIsAnother) {
  EXPECT_EQ(KindOfEnd({.nodes = {{.node = "n1",
                                  .ok = false,
                                  .reason = "no space left",
                                  .shared_disk_full = true}}}),
            FailureKind::kDiskFull);
  EXPECT_EQ(
      KindOfEnd(
          {.nodes = {{.node = "n1", .ok = false, .reason = "outputs: the store does not answer"}}}),
      FailureKind::kOther);
}

TEST(FailureKind, KnowsTheTimeLimit) {
  EXPECT_EQ(KindOfEnd({.time_limit = absl::Hours(1), .timed_out = true}), FailureKind::kTimeLimit);
}

TEST(FailureKind, HasANameOfItsOwnForEach) {
  std::set<std::string> names;
  for (const FailureKind kind : kFailureKinds) {
    names.emplace(Name(kind));
    EXPECT_EQ(FailureKindFromName(Name(kind)), kind);
  }
  EXPECT_EQ(names.size(), kFailureKinds.size());
  EXPECT_EQ(FailureKindFromName("of another version"), FailureKind::kOther);
}

}  // namespace
}  // namespace tutti::service
