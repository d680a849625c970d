#include "spec/types/job.h"

#include <gtest/gtest.h>

namespace tutti::spec {
namespace {

TEST(JobTest, ItsWorldIsTheProcessesOfAllNodes) {
  JobSpec job;
  EXPECT_EQ(job.WorldSize(), 1);
  job.instance_count = 3;
  job.distribution = {.type = "pytorch", .process_count_per_instance = 4};
  EXPECT_EQ(job.WorldSize(), 12);
  EXPECT_EQ(job.ServerCount(), 0);
}

TEST(JobTest, ParameterServersAreRanksThatServe) {
  JobSpec job;
  job.instance_count = 3;
  job.distribution.type = "tensorflow";
  job.distribution.worker_count = 3;
  job.distribution.parameter_server_count = 2;
  EXPECT_EQ(job.WorldSize(), 5);
  EXPECT_EQ(job.ServerCount(), 2);
}

TEST(JobTest, OfARayJobAllNodesButTheFirstServe) {
  JobSpec job;
  job.instance_count = 3;
  job.distribution.type = "ray";
  EXPECT_EQ(job.ServerCount(), 2);
}

TEST(JobTest, WhatIsSentBesideTheCodeMakesAnotherSnapshot) {
  JobSpec job;
  job.code = "/work/src";
  EXPECT_EQ(job.AllCode(), "/work/src");
  job.additional_includes = {"/work/shared", "/work/more"};
  EXPECT_EQ(job.AllCode(), "/work/src\n/work/shared\n/work/more");
}

}  // namespace
}  // namespace tutti::spec
