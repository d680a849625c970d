// Covers: spec/command/batch_options.cc.
#include "spec/file/batch_script.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "spec/command/batch_options.h"
#include "spec/file/job_file.h"
#include "spec/json/job_json.h"

namespace tutti::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Site WithCluster() {
  Site site = BuiltInSite();
  site.computes["hpc"] = "hpc";
  site.slurm_computes["hpc"].folder = "/shared";
  return site;
}

ReadResult ReadScript(absl::string_view lines, const Site& site = WithCluster()) {
  const auto result =
      ReadJobFile(absl::StrCat("#!/bin/bash\n", lines), "train.sh", "/home/me", site);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.value_or(ReadResult{});
}

std::string ScriptError(absl::string_view lines, const Site& site = WithCluster()) {
  return std::string(ReadJobFile(absl::StrCat("#!/bin/bash\n", lines), "train.sh", "/home/me", site)
                         .status()
                         .message());
}

TEST(BatchScript, WhatItAsksForIsHandedToSbatchAndSettingsAreTheJobs) {
  const JobSpec spec = ReadScript(
                           "#SBATCH --nodes=2 --ntasks-per-node=4   # a remark\n"
                           "#SBATCH -p gpu -A mine\n#SBATCH --qos high\n"
                           "#SBATCH --gres=gpu:2\n#SBATCH -t 1-12:00:00\n#SBATCH -J 'my job'\n"
                           "#SBATCH --exclusive --reservation=r --constraint=a100&ib\n"
                           "#SBATCH --mem=4G -c2 --mail-type=END --requeue\n"
                           "echo hi\n#SBATCH --nodes=77\n")
                           .spec;
  EXPECT_EQ(spec.compute, "hpc");
  EXPECT_THAT(spec.slurm.shape,
              ElementsAre("--nodes=2", "--ntasks-per-node=4", "--mem=4G", "--cpus-per-task=2"));
  EXPECT_THAT(spec.slurm.options, ElementsAre("--mail-type=END"));
  EXPECT_EQ(spec.slurm.partition, "gpu");
  EXPECT_EQ(spec.slurm.account, "mine");
  EXPECT_EQ(spec.slurm.qos, "high");
  EXPECT_EQ(spec.slurm.gres, "gpu:2");
  EXPECT_EQ(spec.slurm.time, "1-12:00:00");
  EXPECT_EQ(spec.slurm.reservation, "r");
  EXPECT_EQ(spec.slurm.constraint, "a100&ib");
  EXPECT_EQ(spec.slurm.exclusive, true);
  EXPECT_EQ(spec.display_name, "my job");
  EXPECT_GT(spec.max_retries, 0);
  EXPECT_EQ(spec.instance_count, 1);
  EXPECT_EQ(spec.code, "/home/me/train.sh");
  EXPECT_THAT(spec.command, HasSubstr("cd '/home/me'"));
  EXPECT_THAT(spec.command, HasSubstr("exec '/bin/bash' \"$script\""));
  const auto back = JobSpecFromJson(ToJson(spec));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->slurm, spec.slurm);
  EXPECT_EQ(back->max_retries, spec.max_retries);
}

TEST(BatchScript, ErrorsNameTheLineAndTheRemedy) {
  EXPECT_THAT(ScriptError("#SBATCH --nodess=2\n"),
              HasSubstr("train.sh:2: tutti knows no option \"--nodess\" of sbatch"));
  EXPECT_THAT(ScriptError("#SBATCH --nodess=2\n"), HasSubstr("did you mean"));
  EXPECT_THAT(ScriptError("\n#SBATCH --array=1-9\n"),
              HasSubstr("train.sh:3: --array: write a sweep"));
  EXPECT_THAT(ScriptError("#SBATCH -d afterok:7\n"), HasSubstr("--dependency: write a pipeline"));
  EXPECT_THAT(ScriptError("#SBATCH -t soon\n"), HasSubstr("train.sh:2: --time must be"));
  EXPECT_THAT(ScriptError("#SBATCH -N two\n"), HasSubstr("--nodes must be a whole number"));
  EXPECT_THAT(ScriptError("#SBATCH -M moon\n"), HasSubstr("compute \"moon\" does not exist"));
  EXPECT_THAT(ScriptError("#SBATCH -J 'open\n"), HasSubstr("train.sh:2: a quote is not closed"));
  EXPECT_THAT(ScriptError("#SBATCH --mem\n"), HasSubstr("--mem has no value"));
  EXPECT_THAT(ScriptError("#SBATCH hello\n"), HasSubstr("\"hello\" is no option"));
  const auto no_program = ReadJobFile("#!bash\n", "train.sh", "/home/me", BuiltInSite());
  EXPECT_THAT(std::string(no_program.status().message()), HasSubstr("train.sh:1: "));
}

TEST(BatchScript, WhatHasNoEffectIsSaid) {
  const auto warnings = ReadScript("#SBATCH -o %j.log\n#SBATCH --signal=B:USR1@60\n").warnings;
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("train.sh:2: --output has no effect"),
                                    HasSubstr("train.sh:3: --signal=B:")));
}

TEST(BatchScript, ASignalForWhatSrunStartsIsHandedToSbatchAndItIsSaidWhatItReplaces) {
  const ReadResult read = ReadScript("#SBATCH --signal=USR1@60\n");
  EXPECT_THAT(read.spec.slurm.shape, ElementsAre("--signal=USR1@60"));
  EXPECT_THAT(read.warnings,
              ElementsAre(HasSubstr("what srun starts gets it, in place of the SIGTERM")));
}

TEST(BatchScript, SomeOptionsDoWithoutTheirValue) {
  const ReadResult read =
      ReadScript("#SBATCH --nice --exclusive\n#SBATCH --propagate --nice=7 --exclusive=user\n");
  EXPECT_THAT(read.spec.slurm.options,
              ElementsAre("--nice", "--propagate", "--nice=7", "--exclusive=user"));
  EXPECT_EQ(read.spec.slurm.exclusive, true);
  EXPECT_THAT(ScriptError("#SBATCH --contiguous=yes\n"), HasSubstr("--contiguous takes no value"));
}

TEST(BatchScript, OnVirtualNodesSlurmsVariablesAreSetAndSrunSaysThatItIsNotThere) {
  const ReadResult local =
      ReadScript("#SBATCH -N 2 -n 4 -t 90 --cpus-per-task=2 -D sub\n", BuiltInSite());
  EXPECT_EQ(local.spec.compute, "local");
  EXPECT_EQ(local.spec.timeout, absl::Minutes(90));
  EXPECT_THAT(local.warnings, ElementsAre(HasSubstr("--nodes=2 has no effect")));
  EXPECT_THAT(local.spec.command, HasSubstr("SLURM_NTASKS=4"));
  EXPECT_THAT(local.spec.command, HasSubstr("SLURM_CPUS_PER_TASK=2"));
  EXPECT_THAT(local.spec.command, HasSubstr("cd '/home/me/sub'"));
  EXPECT_THAT(local.spec.command, HasSubstr("there is no Slurm on virtual nodes"));
  const JobSpec chosen = ReadScript("#SBATCH -M local\n").spec;
  EXPECT_EQ(chosen.compute, "local");
}

TEST(BatchScript, TimesAreSlurms) {
  const auto time = [](absl::string_view text) {
    absl::Duration duration;
    return ParseSlurmTime(text, duration) ? duration : -absl::InfiniteDuration();
  };
  EXPECT_EQ(time("90"), absl::Minutes(90));
  EXPECT_EQ(time("1:30"), absl::Seconds(90));
  EXPECT_EQ(time("2:00:05"), absl::Hours(2) + absl::Seconds(5));
  EXPECT_EQ(time("1-12"), absl::Hours(36));
  EXPECT_EQ(time("1-12:30"), absl::Hours(36) + absl::Minutes(30));
  EXPECT_EQ(time("UNLIMITED"), absl::InfiniteDuration());
  for (const char* wrong : {"", "x", "1:2:3:4", "1-", "-1", "1:-2"}) {
    EXPECT_EQ(time(wrong), -absl::InfiniteDuration()) << wrong;
  }
}

TEST(BatchScript, AJobFileThatIsAScriptIsReadAsOne) {
  const auto result = ReadJobFile("#!/bin/sh -e\necho hi\n", "x.sh", "/base");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->spec.command, HasSubstr("exec '/bin/sh' '-e' \"$script\""));
  EXPECT_THAT(result->warnings, IsEmpty());
}

}  // namespace
}  // namespace tutti::spec
