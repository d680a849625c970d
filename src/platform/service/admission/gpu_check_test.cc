#include "platform/service/admission/gpu_check.h"

#include <gmock/gmock.h>

namespace tutti::service {
namespace {
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

spec::JobSpec Demanding() {
  spec::JobSpec job;
  job.file_name = "job.yml";
  job.compute = "local";
  job.gpu_demands = {{"--gpus=all (docker_args)", {"job.yml", 7}, true},
                     {"instance_type Standard_NC6", {"job.yml", 8}, false}};
  job.environment.image = {"nvidia/cuda:12.4", "", "", "job.yml:3", ""};
  return job;
}

std::function<size_t()> Have(size_t gpus) {
  return [gpus] { return gpus; };
}

TEST(GpuCheck, RefusesWhatWouldNotStartAndWarnsOfWhatMayDoWithout) {
  std::vector<std::string> warnings;
  EXPECT_EQ(
      CheckGpus(Demanding(), Have(0), warnings).message(),
      "job.yml:7: --gpus=all (docker_args) asks for GPUs, of which this machine has none: take "
      "it out, or name a compute whose nodes have them");
  EXPECT_THAT(
      warnings,
      ElementsAre("job.yml:8: instance_type Standard_NC6 asks for GPUs, of which this "
                  "machine has none: a program that needs one will fail",
                  "job.yml:3: image nvidia/cuda:12.4 is made for GPUs, of which this machine "
                  "has none: a program that needs one will fail"));
}

TEST(GpuCheck, ANameSaysThatAnEnvironmentIsMadeForGpus) {
  for (const char* name : {"AzureML-acpt-pytorch-1.13-py38-cuda11.7-gpu", "team-gpu"}) {
    spec::JobSpec job;
    job.file_name = "job.yml";
    job.compute = "local";
    job.environment.name = name;
    job.environment.place = "job.yml:4";
    std::vector<std::string> warnings;
    EXPECT_TRUE(CheckGpus(job, Have(0), warnings).ok());
    EXPECT_THAT(warnings, ElementsAre(StartsWith("job.yml:4: environment ")));
  }
}

TEST(GpuCheck, MoreThanThereAreAreRefusedByTheirNumber) {
  spec::JobSpec job = Demanding();
  job.gpu_demands[0] = {"--gpus=8 (docker_args)", {"job.yml", 7}, true, 8};
  std::vector<std::string> warnings;
  EXPECT_EQ(CheckGpus(job, Have(1), warnings).message(),
            "job.yml:7: --gpus=8 (docker_args) asks for 8 GPUs on a node, and this machine has 1: "
            "ask for fewer, or name a compute whose nodes have them");
  EXPECT_TRUE(CheckGpus(job, Have(8), warnings).ok());
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(GpuCheck, NothingIsSaidWhereThereAreGpusOrOfNodesElsewhere) {
  std::vector<std::string> warnings;
  EXPECT_TRUE(CheckGpus(Demanding(), Have(1), warnings).ok());
  spec::JobSpec elsewhere = Demanding();
  elsewhere.compute = "hpc";
  EXPECT_TRUE(CheckGpus(elsewhere, Have(0), warnings).ok());
  spec::JobSpec pipeline;
  spec::Step step;
  step.job = Demanding();
  pipeline.steps.push_back(step);
  EXPECT_THAT(warnings, IsEmpty());
  EXPECT_FALSE(CheckGpus(pipeline, Have(0), warnings).ok()) << "of its step";
}

}  // namespace
}  // namespace tutti::service
