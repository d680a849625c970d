#include "platform/cluster/power_program.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/command.h"
#include "base/file.h"

namespace tutti::cluster {
namespace {

using ::testing::HasSubstr;

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
    const auto result = base::RunCommand(options, "", base::Deadline::After(absl::Seconds(30)));
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

}  // namespace
}  // namespace tutti::cluster
