#include "spec/types/asked_of_slurm.h"

#include <gtest/gtest.h>

namespace tutti::spec {
namespace {

TEST(AskedOfSlurm, APartOfANodeIsInSlurmsWords) {
  JobSpec job;
  job.instance_count = 2;
  job.distribution = {.type = "mpi", .process_count_per_instance = 3};
  job.slurm.qos = "high";
  EXPECT_EQ(AskedOfSlurm(job), job.slurm);
  job.share = NodeShare{.memory_bytes = int64_t{3} << 29, .gpus = 2};
  const SlurmSettings asked = AskedOfSlurm(job);
  EXPECT_EQ(asked.qos, "high");
  EXPECT_EQ(asked.exclusive, false);
  EXPECT_EQ(asked.cpus_per_node, 3);
  EXPECT_EQ(asked.memory, "1536M");
  EXPECT_EQ(asked.gres, "gpu:2");
  job.share = NodeShare{.cpus = 8};
  EXPECT_EQ(AskedOfSlurm(job).cpus_per_node, 8);
  EXPECT_EQ(AskedOfSlurm(job).memory, "");
  // Nor what its compute asks for of whole nodes.
  EXPECT_EQ(Over({.gres = "gpu:8", .exclusive = true}, AskedOfSlurm(job)).gres, "");
  EXPECT_EQ(Over({.gres = "gpu:8", .exclusive = true}, AskedOfSlurm(job)).exclusive, false);
}

}  // namespace
}  // namespace tutti::spec
