#include "platform/client/submit/job_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::client {
namespace {

using testing::HasSubstr;

constexpr char kText[] =
    "command: x  # why\n"
    "inputs:\n"
    "  epochs: 3\n"
    "  data:\n"
    "    type: uri_folder\n"
    "    path: ./data\n";

TEST(ApplySettings, WithoutSettingsTheTextIsUntouched) {
  EXPECT_EQ(*ApplySettings(kText, {}), kText);
  EXPECT_EQ(*ApplySettings("{", {}), "{");
}

TEST(ApplySettings, SetsValuesAndThePathsOfInputs) {
  const auto text = ApplySettings(
      kText, {"inputs.epochs=5", "inputs.data=/d", "resources.instance_count=2", "name=a=b"});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text,
            "command: x\n"
            "inputs:\n"
            "  epochs: 5\n"
            "  data:\n"
            "    type: uri_folder\n"
            "    path: /d\n"
            "resources:\n"
            "  instance_count: 2\n"
            "name: a=b\n");
}

TEST(ApplySettings, AreOptionsOfAScript) {
  EXPECT_EQ(*ApplySettings("#!/bin/sh\n#SBATCH -N4\n\ntrue\n", {"compute=hpc", "nodes=2"}),
            "#!/bin/sh\n#SBATCH -N4\n\n#SBATCH \"--clusters=hpc\" \"--nodes=2\"\ntrue\n");
  EXPECT_EQ(*ApplySettings("#!/bin/sh", {"nodes=2"}), "#!/bin/sh\n#SBATCH \"--nodes=2\"\n");
  EXPECT_FALSE(ApplySettings("#!/bin/sh\n", {"nodes"}).ok());
}

TEST(ApplySettings, SaysWhatIsWrongWithASetting) {
  for (const char* setting : {"epochs", "=5", "command.x=1", "inputs..x=1", "name=[1"}) {
    const auto text = ApplySettings(kText, {setting});
    EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument) << setting;
    EXPECT_THAT(std::string(text.status().message()), HasSubstr("--set"));
  }
  EXPECT_FALSE(ApplySettings("[1]", {"a=1"}).ok());
}

TEST(JobText, OptionsSetTheKeysThatTheyStandFor) {
  const std::vector<KeyOption> options = {
      {"--compute", "compute", "hpc", "compute"},
      {"--env A", "environment_variables.A", "5: \"x\"", ""},
      {"--memory", "resources.properties.tutti.memory", "8GB", "mem"}};
  EXPECT_EQ(*ApplyOptions("command: x\n", options),
            "command: x\ncompute: hpc\nenvironment_variables:\n  A: \"5: \\\"x\\\"\"\n"
            "resources:\n  properties:\n    tutti:\n      memory: 8GB\n");
  EXPECT_EQ(*ApplyOptions("jobs: {}\n", {options[0]}),
            "jobs: {}\nsettings:\n  default_compute: hpc\n");
  EXPECT_EQ(*ApplyOptions("#!/bin/sh\nls\n", {options[0], options[2]}),
            "#!/bin/sh\n#SBATCH \"--clusters=hpc\" \"--mem=8GB\"\nls\n");
  EXPECT_THAT(std::string(ApplyOptions("#!/bin/sh\nls\n", options).status().message()),
              testing::HasSubstr("--env A is not for scripts with #SBATCH lines"));
}

TEST(JobText, ANameGoesAndNothingElse) {
  EXPECT_EQ(*WithoutName("# mine\ncommand: x\n"), "# mine\ncommand: x\n");
  EXPECT_EQ(*WithoutName("name: a\ncommand: x\n"), "command: x\n");
  EXPECT_EQ(*WithoutName("#!/bin/sh\nname: a\n"), "#!/bin/sh\nname: a\n");
}

}  // namespace
}  // namespace tutti::client
