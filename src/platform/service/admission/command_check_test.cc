#include "platform/service/admission/command_check.h"

#include <gmock/gmock.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CommandCheck : public ::testing::Test {
 protected:
  CommandCheck() {
    EXPECT_TRUE(base::WriteFileAtomic(folder_.path() / "python3", "", 0755).ok());
    EXPECT_TRUE(base::WriteFileAtomic(folder_.path() / "notes", "", 0644).ok());
    facts_.own["PATH"] = folder_.path().string();
    job_.file_name = "job.yml";
    job_.command_line = 3;
    job_.compute = "local";
    job_.command = "pyhton3 train.py";
  }

  std::string Refusal() {
    warnings_.clear();
    return std::string(CheckCommand(job_, facts_, warnings_).message());
  }

  const base::TemporaryDirectory folder_;
  MachineFacts facts_;
  spec::JobSpec job_;
  std::vector<std::string> warnings_;
};

TEST_F(CommandCheck, NamesTheLineAndTheRemedy) {
  EXPECT_EQ(Refusal(),
            "job.yml:3: the command runs \"pyhton3\", which is not in the service's PATH (did you "
            "mean \"python3\"?); install it, or name an environment that has it");
  EXPECT_THAT(warnings_, IsEmpty());
  job_.command = "notes";
  EXPECT_THAT(Refusal(), HasSubstr("\"notes\""));
  job_.command = "python3 train.py";
  EXPECT_EQ(Refusal(), "");
}

TEST_F(CommandCheck, WarnsOfLightningStartedOnceOnEachNode) {
  job_.command = "python3 train.py";
  job_.instance_count = 2;
  job_.distribution.type = "pytorch";
  job_.environment.is_host = false;
  job_.environment.packages = {{"torch==2.4", "c.yml:3"}, {"pytorch_lightning>=2", "c.yml:4"}};
  EXPECT_EQ(Refusal(), "");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("job.yml:3: one process is started on each of 2")));
  job_.command = "env -u RANK -u LOCAL_RANK -u WORLD_SIZE python3 train.py";
  EXPECT_EQ(Refusal(), "");
  EXPECT_THAT(warnings_, IsEmpty());
  job_.command = "python3 train.py";
  job_.distribution.process_count_per_instance = 2;
  EXPECT_EQ(Refusal(), "");
  EXPECT_THAT(warnings_, IsEmpty()) << "each device has its process";
}

TEST_F(CommandCheck, RefusesWhatIsLongerThanLinuxTakes) {
  job_.command = absl::StrCat("notes ", std::string(140'000, 'x'));
  job_.compute = "hpc";
  EXPECT_THAT(Refusal(), HasSubstr("job.yml:3: the command has 140006 bytes, and Linux takes "
                                   "131071: put it into a script"));
  job_.command = "python3 train.py";
  job_.environment_variables["LABELS"] = std::string(131'065, 'x');
  EXPECT_EQ(Refusal(), "") << "the job file's reader says that, with the variable's line";
}

TEST_F(CommandCheck, ARayJobNeedsRay) {
  job_.command = "python3 train.py";
  job_.distribution.type = "ray";
  EXPECT_THAT(Refusal(), HasSubstr("a ray job runs \"ray\", which is not in the service's PATH"));
  ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / "ray", "", 0755).ok());
  EXPECT_EQ(Refusal(), "");
}

TEST_F(CommandCheck, SaysNothingOfWhatThisMachinesPathDoesNotTell) {
  job_.environment_variables["BASH_ENV"] = "functions.sh";
  EXPECT_EQ(Refusal(), "");
  for (const char* path : {"bin:/usr/bin", "", "/opt/${{inputs.version}}/bin:/usr/bin"}) {
    job_.environment_variables = {{"PATH", path}};
    EXPECT_EQ(Refusal(), "") << path;
  }
  job_.environment_variables.clear();
  job_.environment.is_host = false;
  EXPECT_EQ(Refusal(), "");
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CommandCheck, NamesProgramsOfCondaThatTheMachineDoesNotHave) {
  job_.environment.is_host = false;
  job_.environment.programs = {{"python3", "python3-tool", "c.yml:3"}, {"g++", "gxx", "c.yml:4"}};
  EXPECT_EQ(Refusal(),
            "c.yml:4: conda's \"gxx\" is not installed by tutti: \"g++\" is not in the service's "
            "PATH; install it, or say in site.yml that jobs do without it: conda_packages: {gxx: "
            "\"\"}");
  EXPECT_THAT(warnings_, IsEmpty());
  job_.compute = "hpc";
  EXPECT_EQ(Refusal(), "");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the nodes of compute \"hpc\" must have it")));
  job_.compute = "local";
  job_.environment.image.reference = "team/train:1";
  EXPECT_EQ(Refusal(), "");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("\"python3\" must be in the image"),
                                     HasSubstr("\"g++\" must be in the image")));
}

TEST_F(CommandCheck, LooksWhereTheJobWould) {
  job_.command = "python3 train.py";
  job_.environment_variables["PATH"] = "/nonexistent:$PATH";
  EXPECT_THAT(Refusal(), HasSubstr("is not in the PATH of environment_variables"));
  facts_.program_folder = folder_.path();
  EXPECT_EQ(Refusal(), "");
}

TEST_F(CommandCheck, WarnsWhereTheJobMayRunAllTheSame) {
  job_.command = "pyhton3 a.py; python3 b.py";
  EXPECT_EQ(Refusal(), "");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("did you mean \"python3\"?")));
  job_.command = "pyhton3 a.py";
  job_.compute = "hpc";
  EXPECT_EQ(Refusal(), "");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the nodes of compute \"hpc\" must have it")));
  job_.compute = "local";
  spec::JobSpec pipeline;
  pipeline.kind = spec::JobKind::kPipeline;
  pipeline.steps.resize(1);
  pipeline.steps[0].job = job_;
  std::swap(job_, pipeline);
  EXPECT_EQ(Refusal(), "");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("job.yml:3: the command runs \"pyhton3\"")));
}

}  // namespace
}  // namespace tutti::service
