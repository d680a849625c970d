#include "platform/service/admission/rdma_check.h"

#include <gmock/gmock.h>

namespace tutti::service {
namespace {
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kPorts = {"mlx5_0 port 1"};

spec::JobSpec JobOf(const std::string& kind) {
  spec::JobSpec job;
  job.file_name = "job.yml";
  job.command_line = 1;
  job.compute = "hpc";
  job.distribution.type = kind;
  job.instance_count = 2;
  job.instance_count_location = {"job.yml", 4};
  return job;
}

std::vector<std::string> Warnings(const spec::JobSpec& job,
                                  const std::vector<std::string>& ports = kPorts) {
  std::vector<std::string> warnings;
  WarnOfUnusedRdma(job, ports, warnings);
  return warnings;
}

TEST(RdmaCheck, WarnsOfWhatTalksOverTcpBetweenNodes) {
  const spec::JobSpec job = JobOf("pytorch");
  const auto expected = ElementsAre(
      "job.yml:4: RDMA is there (mlx5_0 port 1), and PyTorch's gloo, which ranks without GPUs "
      "take, "
      "talks over TCP past it; nccl and Horovod, which is tutti's, use it");
  EXPECT_THAT(Warnings(job), expected);
  spec::JobSpec pipeline;
  pipeline.kind = spec::JobKind::kPipeline;
  spec::Step step;
  step.job = job;
  pipeline.steps.push_back(step);
  EXPECT_THAT(Warnings(pipeline), expected) << "of its step";
  EXPECT_EQ(Warnings(JobOf("tensorflow")).size(), 1u);
  EXPECT_EQ(Warnings(JobOf("ray")).size(), 1u);
}

TEST(RdmaCheck, SaysNothingWhereItIsUsedOrThereIsNoNetwork) {
  const spec::JobSpec job = JobOf("pytorch");
  EXPECT_THAT(Warnings(job, {}), IsEmpty());
  EXPECT_THAT(Warnings(JobOf("mpi")), IsEmpty());
  EXPECT_THAT(Warnings(JobOf("none")), IsEmpty());
  spec::JobSpec other = job;
  other.instance_count = 1;
  EXPECT_THAT(Warnings(other), IsEmpty());
  other = job;
  other.compute = "local";
  EXPECT_THAT(Warnings(other), IsEmpty()) << "virtual nodes are one machine";
  other = job;
  other.environment.packages = {{.text = "horovod"}};
  EXPECT_THAT(Warnings(other), IsEmpty());
  other = job;
  other.gpu_demands = {{"--gpus=all (docker_args)", {"job.yml", 7}, true}};
  EXPECT_THAT(Warnings(other), IsEmpty());
  other = job;
  other.slurm.gres = "gpu:4";
  EXPECT_THAT(Warnings(other), IsEmpty());
}

}  // namespace
}  // namespace tutti::service
