// A node of many ranks, with as few descriptors as systems give by default.
// Covers: node_team.cc.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/comm/forked_ranks.h"
#include "runtime/comm/group/group_test_support.h"

namespace tutti::comm {
namespace {

// 64 times 64 descriptors would be too many under way at once for a user without privileges.
std::string LiveWithFewDescriptors(const GroupOptions& options) {
  const rlimit usual = {1024, 1024};
  if (::setrlimit(RLIMIT_NOFILE, &usual) != 0) return "no limit";
  if (::geteuid() == 0 && ::setresuid(61235, 61235, 61235) != 0) return "still root";
  ::prctl(PR_SET_DUMPABLE,
          1);  // which losing privileges has ended: /proc/self is root's until then
  auto group = JoinGroup(options);
  if (!group.ok()) return std::string(group.status().message());
  float sum = 1;
  const absl::Status status =
      (*group)->AllReduce(&sum, 1, DataType::kFloat32, ReduceOp::kSum, Soon());
  if (!status.ok()) return std::string(status.message());
  return sum == static_cast<float>(options.size) ? "all" : "a wrong sum";
}

TEST(NodeSizeTest, SixtyFourUnprivilegedRanksOfANodeFormATeam) {
  constexpr int kRanks = 64;
  ForkedRanks ranks;
  for (const GroupOptions& options : OptionsFor(kRanks, GroupOptions::Transport::kAuto)) {
    ranks.Start([options] { return LiveWithFewDescriptors(options); });
  }
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_EQ(ranks.Report(rank), "all") << rank;
}

}  // namespace
}  // namespace tutti::comm
