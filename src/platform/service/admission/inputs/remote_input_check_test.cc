#include "platform/service/admission/inputs/remote_input_check.h"

#include <gmock/gmock.h>

#include "http/client/file_server_for_tests.h"

namespace tutti::service {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class RemoteInputCheckTest : public ::testing::Test {
 protected:
  spec::Input Remote(const std::string& path) const {
    spec::Input input{.path = server_.url(path)};
    input.location = {"job.yml", 4};
    return input;
  }
  absl::Status Check(const spec::JobSpec& job) {
    const auto deadline = base::Deadline::After(base::Patient(absl::Seconds(20)));
    return CheckRemoteInputs(job, {}, deadline, warnings_);
  }

  http::FileServer server_;
  std::vector<std::string> warnings_;
};

TEST_F(RemoteInputCheckTest, TheCheckNamesEachThatIsNotThereWithItsLine) {
  server_.Put("/there.csv", "1", "\"1\"");
  spec::Step step;
  step.job.inputs["y"] = Remote("/gone");
  step.job.inputs["y"].location = {"step.yml", 9};
  spec::JobSpec job;
  job.inputs = {{"a", Remote("/there.csv")}, {"x", Remote("/gone")}};
  job.steps.push_back(step);
  const absl::Status status = Check(job);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("job.yml:4: input \"x\": "), HasSubstr("\nstep.yml:9: input \"y\": "),
                    Not(HasSubstr("\"a\""))));
  job.steps.clear();
  job.inputs.erase("x");
  EXPECT_TRUE(Check(job).ok());
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(RemoteInputCheckTest, WhatOnlyTheNodesOfAClusterMayReachIsAWarning) {
  spec::JobSpec job;
  job.inputs["x"] = {.path = "http://127.0.0.1:1/x"};
  job.compute = "hpc";
  EXPECT_TRUE(Check(job).ok());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the nodes of compute \"hpc\" may reach it")));
  job.compute = "local";
  EXPECT_TRUE(absl::IsInvalidArgument(Check(job)));
}

TEST_F(RemoteInputCheckTest, AServerThatDoesNotAnswerInTimeIsAWarning) {
  spec::JobSpec job;
  job.inputs["x"] = Remote("/silent");
  const auto soon = base::Deadline::After(absl::Milliseconds(100));
  EXPECT_TRUE(CheckRemoteInputs(job, {}, soon, warnings_).ok());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("job.yml:4: input \"x\": ")));
}

}  // namespace
}  // namespace tutti::service
