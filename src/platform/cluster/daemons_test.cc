#include "platform/cluster/daemons.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/command.h"
#include "base/test_patience.h"

namespace tutti::cluster {
namespace {

using ::testing::HasSubstr;

// Runs the drain of node n; `squeue` is the body of a shell function that has $asked, the number of
// times that it was asked before.
base::CommandResult Drained(int wait_seconds, const std::string& squeue) {
  const base::TemporaryDirectory folder;
  const std::string count = (folder.path() / "asked").string();
  const std::string script =
      absl::StrCat("set -e\nscontrol() { :; }\nsleep() { :; }\nsqueue() { asked=$(wc -l <", count,
                   "); echo >>", count, "; ", squeue, "; }\n: >", count, "\n",
                   DrainText("n", wait_seconds), "wc -l <", count, "\n");
  base::ChildOptions options;
  options.arguments = {"/bin/sh", "-c", script};
  options.environment = {{"PATH", "/usr/bin:/bin"}};
  const auto result =
      base::RunCommand(options, "", base::Deadline::After(base::Patient(absl::Seconds(30))));
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : base::CommandResult{};
}

TEST(Drain, WaitsUntilSqueueTellsOfNoJob) {
  const auto drained = Drained(9, "[ $asked -ge 2 ] || echo 7");
  EXPECT_EQ(drained.out, "3\n") << drained.err;
}

TEST(Drain, WaitsForAJobWhoseNodesStillBoot) {
  const auto drained = Drained(9, "[ $asked -ge 2 ] || case $* in *,configuring,*) echo 7 ;; esac");
  EXPECT_EQ(drained.out, "3\n") << drained.err;
}

TEST(Drain, TakesASqueueThatFailsForNoAnswer) {
  EXPECT_EQ(Drained(9, "[ $asked -ge 3 ]").out, "4\n");
  const auto drained = Drained(2, "false");
  EXPECT_EQ(drained.out, "");
  EXPECT_THAT(drained.err, HasSubstr("n still has jobs or none: squeue fails"));
}

TEST(Drain, NamesTheJobsThatRunOn) {
  const auto drained = Drained(2, "printf '7\\n8\\n'");
  EXPECT_EQ(drained.out, "");
  EXPECT_THAT(drained.err, HasSubstr("n still runs jobs 7 8; it takes no new ones"));
  EXPECT_THAT(drained.err, HasSubstr("`scontrol update nodename=n state=RESUME`"));
}

TEST(EndJobs, CancelsUntilThereIsNoJobAndTakesASqueueThatFailsForNoAnswer) {
  const base::TemporaryDirectory folder;
  const auto end = [&](const std::string& squeue) {
    base::ChildOptions options;
    options.arguments = {
        "/bin/sh", "-c",
        absl::StrCat("set -e\nasked=0\nsleep() { asked=$((asked + 1)); }\nscancel() "
                     "{ echo cancel $*; }\nsqueue() { ",
                     squeue, "; }\n", EndJobsText(absl::Seconds(1)))};
    options.environment = {{"PATH", "/usr/bin:/bin"}};
    const auto result =
        base::RunCommand(options, "", base::Deadline::After(base::Patient(absl::Seconds(30))));
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(base::CommandResult{});
  };
  EXPECT_EQ(end("[ $asked = 1 ] || printf '8\\n7\\n8\\n'").out, "cancel 7 8\n");
  const auto unknown = end("false");
  EXPECT_EQ(unknown.out, "");
  EXPECT_FALSE(unknown.exit.ok());
  EXPECT_THAT(unknown.err, HasSubstr("jobs may run on: squeue fails"));
}

}  // namespace
}  // namespace tutti::cluster
