#include "platform/service/admission/resume_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "platform/service/world_for_tests.h"
#include "spec/json/launch_plan.h"

namespace tutti::service {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kLater[] = "name: later\ncommand: echo hi\nresume: j\n";

TEST_F(ServiceTest, AJobResumesFromTheOutputsOfOneThatHasEnded) {
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  const auto later = world_.Submit(kLater);
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_THAT(later->record.job.spec.origin, Contains(Pair("resumes_from", "j")));
  ASSERT_TRUE(world_.StepUntil([&] { return !world_.engine().Allocations().empty(); }));
  const auto plan = spec::LaunchPlanFromJson(
      base::ReadFile(world_.engine().root() / world_.engine().Allocations()[0] / "plan-0").value());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->resume, "j");
  EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(plan->resume_outputs) / "from-n1"));
}

TEST_F(ServiceTest, AJobThatCannotBeResumedFromIsRefusedWithTheRemedy) {
  const auto why = [&](const std::string& text) {
    const auto checked = service().Check({.text = text, .base_directory = "/"});
    EXPECT_TRUE(absl::IsInvalidArgument(checked.status())) << checked.status();
    return std::string(checked.status().message());
  };
  EXPECT_EQ(why(kLater),
            "job.yml:3: resume: there is no job \"j\" here; tutti job list shows those that there "
            "are");
  ASSERT_TRUE(world_.Submit().ok());
  EXPECT_THAT(why(kLater), HasSubstr("cancel it (tutti job cancel j) or wait for its end"));
  ASSERT_TRUE(world_.StepUntilOver("j"));
  std::filesystem::remove_all(service().files().FolderOf("j") / "outputs");
  EXPECT_THAT(why(kLater), HasSubstr("job j has no outputs to go on from"));
  ASSERT_TRUE(world_
                  .Submit("type: pipeline\nname: p\n"
                          "jobs: {a: {command: echo hi, environment: host}}\n")
                  .ok());
  EXPECT_THAT(why("command: echo hi\nresume: p\n"),
              HasSubstr("job p is a pipeline: resume from one of its steps, as p.STEP"));
}

}  // namespace
}  // namespace tutti::service
