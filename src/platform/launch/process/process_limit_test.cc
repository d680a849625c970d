#include "platform/launch/process/process_limit.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::launch {
namespace {

std::string OwnCgroups() { return *base::ReadFile("/proc/self/cgroup", 1 << 16); }

// 0, or the number of the first expectation that does not hold. It moves its whole process.
int LiveInAReservedLimit() {
  const std::string before = OwnCgroups();
  ReserveProcessLimit();
  if (!absl::StrContains(OwnCgroups(), absl::StrCat("tutti.standby.", ::getpid()))) return 1;
  {
    spec::LaunchPlan plan;
    plan.allocation_id = absl::StrCat("reserved.", ::getpid());
    const ProcessLimit limit(plan, 64);
    if (!limit.holds()) return 2;
    if (!absl::StrContains(OwnCgroups(), absl::StrCat("tutti.reserved.", ::getpid()))) return 3;
  }
  ReturnProcessLimit();
  return OwnCgroups() == before ? 0 : 4;
}

TEST(ProcessLimitTest, TakesTheCgroupThatWasReservedAndGivesItBack) {
  if (!absl::StrContains(OwnCgroups(), ":pids:")) GTEST_SKIP() << "no cgroup v1 for processes";
  spec::LaunchPlan plan;
  plan.allocation_id = absl::StrCat("try.", ::getpid());
  if (!ProcessLimit(plan, 64).holds()) GTEST_SKIP() << "this user may not make cgroups";
  const pid_t child = ::fork();
  if (child == 0) ::_exit(LiveInAReservedLimit());
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace tutti::launch
