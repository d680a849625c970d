#include "spec/command/read_only_writes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::spec {
namespace {
using ::testing::HasSubstr;

class WritesToReadOnlyTest : public ::testing::Test {
 protected:
  WritesToReadOnlyTest() {
    job_.inputs["data"] = {.path = "/mnt/data"};
    job_.inputs["scratch"] = {.path = "/mnt/data/scratch", .mode = "direct"};
    job_.inputs["stored"].place.emplace();
    job_.inputs["name"].literal = "/mnt/data/run";
  }

  // Returns what is said of a command; "" if nothing.
  std::string Of(const std::string& command) {
    job_.command = command;
    const std::vector<ReadOnlyWrite> found = WritesToReadOnly(job_);
    return found.empty() ? "" : found[0].message;
  }

  JobSpec job_;
};

TEST_F(WritesToReadOnlyTest, NamesWhereTheCommandWrites) {
  EXPECT_EQ(
      Of("python train.py --data /mnt/data --output-dir /mnt/data/models"),
      "--output-dir: /mnt/data/models lies in input \"data\", which is mounted read-only: what "
      "the job writes there fails; write to ${{outputs.NAME}} or ./outputs");
  EXPECT_THAT(Of("python train.py --save_path=\"${{ inputs.stored }}/m.pt\""),
              HasSubstr("--save_path: ${{inputs.stored}}/m.pt lies in input \"stored\""));
  for (const char* command :
       {"python a.py -o /mnt/data/x", "python a.py > /mnt/data/log", "python a.py 2>>/mnt/data/log",
        "python a.py | tee /mnt/data/log", "a log_dir=/mnt/data/x", "a --out '${{inputs.name}}'",
        "a --checkpoint-dir /mnt/data", "a --model_dir /mnt/data/../data/m",
        "a && cp m.pt /mnt/data/", "mkdir -p /mnt/data/ck", "a\ntouch /mnt/data/done",
        "a --tensorboard /mnt/data/tb", "a hydra.run.dir=/mnt/data/h"}) {
    EXPECT_NE(Of(command), "") << command;
  }
}

TEST_F(WritesToReadOnlyTest, WhatIsReadOrMayBeWrittenIsNotNamed) {
  for (const char* command :
       {"python a.py --data /mnt/data", "cat < /mnt/data/x > ./outputs/x", "a --out ./outputs",
        "a --resume-checkpoint-dir /mnt/data", "a --checkpoint /mnt/data/m.pt",
        "a --output /mnt/data/scratch/x", "a --output /mnt/database", "cp -r /mnt/data ./here",
        "a --log-level debug /mnt/data", "a --input-output /mnt/data", "a --output",
        "a --output= -- /mnt/data"}) {
    EXPECT_EQ(Of(command), "") << command;
  }
  job_.environment_variables["TUTTI_READ_ONLY_INPUTS"] = "0";
  EXPECT_EQ(Of("a --output /mnt/data"), "");
}

TEST_F(WritesToReadOnlyTest, VariablesAndVolumesOfTheContainerCount) {
  job_.environment.image.reference = "e.org/image";
  job_.container_options = {"--volume=/srv:/srv:ro,z", "--volume=/srv/w:/srv/w",
                            "--mount=type=bind,source=/a,target=/a,readonly"};
  job_.environment_variables = {{"OUTPUT_DIR", "/srv/models"}, {"DATA_DIR", "/srv"}};
  job_.variable_locations["OUTPUT_DIR"] = {"job.yml", 7};
  const std::vector<ReadOnlyWrite> found = WritesToReadOnly(job_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].location.line, 7);
  EXPECT_THAT(found[0].message,
              HasSubstr("environment variable OUTPUT_DIR: /srv/models lies in the volume /srv,"));
  job_.environment_variables.clear();
  EXPECT_EQ(Of("a --output /srv/w/x"), "");
  EXPECT_NE(Of("a --output /a/x"), "");
}

}  // namespace
}  // namespace tutti::spec
