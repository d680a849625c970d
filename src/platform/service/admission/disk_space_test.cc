#include "platform/service/admission/disk_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A job with an input whose file says that it has `gibibytes`, though the disk has none of them.
class DiskSpaceTest : public ::testing::Test {
 protected:
  spec::JobSpec JobWith(int64_t gibibytes) {
    fs::create_directories(folder_.path() / "data/deep");
    EXPECT_TRUE(base::WriteFileAtomic(folder_.path() / "data/deep/file", "").ok());
    fs::resize_file(folder_.path() / "data/deep/file", gibibytes << 30);
    spec::JobSpec job;
    job.compute = "local";
    job.instance_count = 2;
    job.inputs["data"] = {.path = (folder_.path() / "data").native(), .mode = "download"};
    job.inputs["data"].location = {.file = "job.yml", .line = 7};
    return job;
  }
  std::string Fault(const spec::JobSpec& job) {
    return std::string(CheckCopiesFit(job, folder_.path()).message());
  }
  int64_t Room() { return fs::space(folder_.path()).available >> 30; }

  base::TemporaryDirectory folder_;
};

TEST_F(DiskSpaceTest, ACopyForEachNodeMustHaveRoom) {
  const spec::JobSpec job = JobWith(Room() * 3 / 4 + 1);
  EXPECT_THAT(Fault(job), HasSubstr("job.yml:7: input \"data\": of "));
  EXPECT_THAT(Fault(job), HasSubstr("each of 2 nodes gets a copy (mode: download)"));
  spec::JobSpec alone = job;
  alone.instance_count = 1;
  EXPECT_EQ(Fault(alone).empty(), Room() > 0);
}

TEST_F(DiskSpaceTest, InputsAreSummedAndWhatIsNoFileCountsAsNothing) {
  spec::JobSpec job = JobWith(Room() / 3 + 1);
  job.instance_count = 1;
  EXPECT_EQ(Fault(job).empty(), Room() > 1);
  job.inputs["more"] = job.inputs["data"];
  job.inputs["most"] = job.inputs["data"];
  EXPECT_THAT(Fault(job), HasSubstr("job.yml:7: input \"most\": of "));
  ASSERT_EQ(::mkfifo((folder_.path() / "pipe").c_str(), 0600), 0);
  job.inputs = {{"pipe", {.path = (folder_.path() / "pipe").native(), .mode = "download"}}};
  EXPECT_EQ(Fault(job), "");
}

TEST_F(DiskSpaceTest, WhatIsNotCopiedHereNeedsNone) {
  spec::JobSpec job = JobWith(Room() + 1);
  EXPECT_NE(Fault(job), "");
  job.inputs["data"].mode = "ro_mount";
  EXPECT_EQ(Fault(job), "");
  job.inputs["data"].mode = "download";
  job.compute = "cluster";
  EXPECT_EQ(Fault(job), "");
}

TEST_F(DiskSpaceTest, AStepsInputIsNamedToo) {
  spec::JobSpec pipeline;
  pipeline.kind = spec::JobKind::kPipeline;
  pipeline.steps.push_back({.name = "train", .job = JobWith(Room() + 1)});
  EXPECT_THAT(Fault(pipeline), HasSubstr("job.yml:7: "));
}

}  // namespace
}  // namespace tutti::service
