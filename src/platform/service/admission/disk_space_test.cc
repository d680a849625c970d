#include "platform/service/admission/disk_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

TEST_F(DiskSpaceTest, OfAPatternTheFilesCountThatMatch) {
  spec::JobSpec job = JobWith(Room() * 3 / 4 + 1);
  job.inputs["data"].pattern = "*/fi*";
  EXPECT_THAT(Fault(job), HasSubstr("/data/*/fi* each of 2 nodes gets a copy"));
  job.inputs["data"].pattern = "fi*";
  EXPECT_EQ(Fault(job), "");
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

class FetchRoomTest : public DiskSpaceTest {
 protected:
  static spec::JobSpec JobOf(const std::map<std::string, std::string>& containers) {
    spec::JobSpec job;
    job.compute = "local";
    job.instance_count = 2;
    int line = 7;
    for (const auto& [name, container] : containers) {
      spec::Input& input = job.inputs[name];
      input.place = {.kind = spec::StoreKind::kS3, .container = container, .path = "train"};
      input.location = {.file = "job.yml", .line = line++};
    }
    return job;
  }
  std::string FaultOf(const spec::JobSpec& job, uint64_t bytes_of_each) {
    std::vector<InputInStore> inputs;
    for (const auto& [name, input] : job.inputs) {
      inputs.push_back({.job = &job, .name = &name, .input = &input, .bytes = bytes_of_each});
    }
    return std::string(CheckFetchesFit(inputs, folder_.path()).message());
  }
  uint64_t Free() { return fs::space(folder_.path()).available; }
};

TEST_F(FetchRoomTest, DataMustFitIntoWhatIsFree) {
  const spec::JobSpec job = JobOf({{"data", "sets"}});
  EXPECT_EQ(FaultOf(job, Free() / 2), "");
  EXPECT_EQ(FaultOf(job, 0), "");
  const std::string fault = FaultOf(job, 2 * Free() + (1 << 20));
  EXPECT_THAT(fault, HasSubstr("job.yml:7: input \"data\": bucket \"sets\", path \"train\" has "));
  EXPECT_THAT(fault, HasSubstr(absl::StrCat(" in ", folder_.path().native(), "/data, where ")));
  EXPECT_THAT(fault, HasSubstr(" are free: delete files there, have the data on a larger disk, or "
                               "take mode: direct"));
}

TEST_F(FetchRoomTest, WhatTheCacheKeepsMayGoOrIsTheDataThemselves) {
  const fs::path kept = folder_.path() / "data" / std::string(24, 'a') / "content";
  fs::create_directories(kept);
  ASSERT_TRUE(base::WriteFileAtomic(kept / "file", "").ok());
  const uint64_t free = Free();
  fs::resize_file(kept / "file", 2 * free);  // it says so, and has no block
  EXPECT_EQ(FaultOf(JobOf({{"data", "sets"}}), 2 * free), "");
  EXPECT_THAT(FaultOf(JobOf({{"data", "sets"}}), 4 * free), HasSubstr(" are of data that may go"));
}

TEST_F(FetchRoomTest, InputsOfOneContainerMayBeTheSame) {
  const uint64_t each = Free() / 3 * 2;
  EXPECT_EQ(FaultOf(JobOf({{"a", "sets"}, {"b", "sets"}, {"c", "sets"}}), each), "");
  const std::string fault = FaultOf(JobOf({{"a", "sets"}, {"b", "more"}, {"c", "most"}}), each);
  EXPECT_THAT(fault, HasSubstr("job.yml:8: input \"b\": "));
  EXPECT_EQ(fault.find('\n'), std::string::npos) << "a line for a job: " << fault;
}

TEST_F(FetchRoomTest, EachNodeHasACopyBesideTheData) {
  spec::JobSpec job = JobOf({{"data", "sets"}});
  const uint64_t bytes = Free() / 2;
  EXPECT_EQ(FaultOf(job, bytes), "");
  job.inputs["data"].mode = "download";
  EXPECT_THAT(FaultOf(job, bytes), HasSubstr("and each node gets a copy (mode: download)"));
  EXPECT_THAT(FaultOf(job, bytes), HasSubstr("or take mode: ro_mount"));
  EXPECT_EQ(FaultOf(job, bytes / 4), "");
}

TEST_F(FetchRoomTest, JobsNeedRoomOneByOne) {
  const spec::JobSpec first = JobOf({{"data", "sets"}}), second = JobOf({{"data", "more"}});
  const std::string name = "data";
  const uint64_t bytes = Free() / 3 * 2;
  EXPECT_TRUE(CheckFetchesFit({{&first, &name, &first.inputs.at(name), bytes},
                               {&second, &name, &second.inputs.at(name), bytes}},
                              folder_.path())
                  .ok())
      << "what the first had may go before the second begins";
}

}  // namespace
}  // namespace tutti::service
