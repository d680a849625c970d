#include "platform/cluster/power_program.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/process/command.h"
#include "base/test_patience.h"

namespace tutti::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Runs a text for the controller, whose scontrol tells of nodes "on", "off", "down" and others in
// between; the suspend program fails for "down". Its standard output ends with what was changed.
class PowerTest : public ::testing::Test {
 protected:
  base::CommandResult Run(const std::string& text) {
    const std::string log = (folder_.path() / "log").string();
    const std::string script = absl::StrCat("set -e\n:>", log, R"sh(
setpriv() { shift 5; echo "suspend $2" >>LOG; [ "$2" != down ]; }
scontrol() {
  [ "$1" = --oneliner ] || { echo "$*" >>LOG; return; }
  for state in off=IDLE+CLOUD+POWERED_DOWN going=IDLE+CLOUD+POWERING_DOWN down=DOWN+CLOUD+POWERED_DOWN on=IDLE+CLOUD+DRAIN; do
    echo "NodeName=${state%%=*} Arch=x State=${state#*=} ThreadsPerCore=1"
  done
}
)sh",
                                            text, "cat LOG\n");
    base::ChildOptions options;
    options.arguments = {"/bin/sh", "-c", absl::StrReplaceAll(script, {{"LOG", log}})};
    options.environment = {{"PATH", "/usr/bin:/bin"}};
    const auto result =
        base::RunCommand(options, "", base::Deadline::After(base::Patient(absl::Seconds(30))));
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : base::CommandResult{};
  }

  const base::TemporaryDirectory folder_;
};

TEST_F(PowerTest, SwitchesOffWhatIsNotOffAndTellsIt) {
  EXPECT_EQ(Run(SwitchOffText({"off", "on", "going"}, false)).out, "on\nsuspend on\n");
  EXPECT_EQ(Run(SwitchOffText({"off"}, false)).out, "\n");
  EXPECT_EQ(Run(SwitchOffText({"unknown"}, false)).out, "unknown\nsuspend unknown\n");
}

TEST_F(PowerTest, GivesJobsBackBeforeItSwitchesOffByForce) {
  EXPECT_EQ(Run(SwitchOffText({"off", "on"}, true)).out,
            "on\nupdate nodename=off,on state=DOWN reason=leaves the cluster\nsuspend on\n");
}

TEST_F(PowerTest, NamesWhatStaysOn) {
  const auto result = Run(SwitchOffText({"off", "down", "on"}, false));
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("down could not be switched off; see /var/log"));
}

// Returns what the keep program asks of Slurm, whose node, the one that stays, goes through these
// states.
std::vector<std::string> Kept(const std::vector<std::string>& states) {
  const base::TemporaryDirectory folder;
  const std::string seen = (folder.path() / "seen").string();
  const auto put = [&](const char* name, const std::string& text) {
    EXPECT_TRUE(base::WriteFileAtomic(folder.path() / name, text, 0755).ok());
  };
  put("sleep", "#!/bin/sh\n");
  put("scontrol", absl::StrReplaceAll(R"sh(#!/bin/sh
[ "$1" = --oneliner ] || { echo "$2 $3" >>SEEN.asked; exit; }
sed -n 1p SEEN; sed -i 1d SEEN
)sh",
                                      {{"SEEN", seen}}));
  put("seen",
      absl::StrCat("NodeName=c1 State=", absl::StrJoin(states, "\nNodeName=c1 State="), "\n"));
  base::ChildOptions options;
  const Autoscale scale{.nodes = {"c1", "c2"}, .min = 1, .halt_seconds = 9};
  options.arguments = {"/bin/sh", "-c", KeepProgram(scale)};
  options.environment = {{"PATH", folder.path().native() + ":/usr/bin:/bin"}};
  EXPECT_TRUE(
      base::RunCommand(options, "", base::Deadline::After(base::Patient(absl::Seconds(30)))).ok());
  const auto asked = base::ReadFile(seen + ".asked", 4096);
  if (!asked.ok()) return {};
  return absl::StrSplit(*asked, '\n', absl::SkipEmpty());
}

TEST(KeepProgram, SwitchesOnWhatIsOffOrGoesOff) {
  EXPECT_THAT(Kept({"IDLE+CLOUD+POWERED_DOWN"}), ElementsAre("nodename=c1 state=POWER_UP"));
  EXPECT_THAT(Kept({"IDLE+CLOUD+POWERING_DOWN", "IDLE+CLOUD+POWERED_DOWN"}),
              ElementsAre("nodename=c1 state=POWER_UP"));
}

TEST(KeepProgram, CallsForOneThatVanishedAnew) {
  for (const char* reason : {"Not responding", "preempted"}) {
    EXPECT_THAT(
        Kept({absl::StrCat("DOWN+CLOUD OS=Linux Reason=", reason, " [slurm@2026-01-01]"),
              "DOWN+CLOUD+POWER_DOWN", "IDLE+CLOUD+POWERING_DOWN", "IDLE+CLOUD+POWERED_DOWN"}),
        ElementsAre("nodename=c1 state=POWER_DOWN_FORCE", "nodename=c1 state=POWER_UP"));
  }
}

TEST(KeepProgram, LeavesAloneWhatWorksAndWhatSomeoneHasSetAside) {
  for (const char* state :
       {"IDLE+CLOUD", "IDLE+CLOUD+POWERING_UP", "IDLE+CLOUD+DRAIN+POWERED_DOWN Reason=a new disk [",
        "DOWN+CLOUD+POWERING_UP Reason=resume failed: no machine left [",
        "DOWN+CLOUD Reason=x ["}) {
    EXPECT_THAT(Kept({state, "IDLE+CLOUD+POWERED_DOWN"}), IsEmpty()) << state;
  }
}

}  // namespace
}  // namespace tutti::cluster
