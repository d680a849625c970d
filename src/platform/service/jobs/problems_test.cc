#include "platform/service/jobs/problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Nobody else has these: no lock is needed.
class ProblemsTest : public ::testing::Test {
 protected:
  Problems problems_ ABSL_GUARDED_BY(service_lock);
};

TEST_F(ProblemsTest, KeepsAFailureUntilItIsOver) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  problems_.Note("the engine cannot be observed", absl::UnavailableError("it is away"));
  problems_.Note("the engine cannot be observed", absl::UnavailableError("it is gone"));
  EXPECT_THAT(problems_.Lines(), ElementsAre("the engine cannot be observed: it is gone"));
  problems_.Note("the engine cannot be observed", absl::OkStatus());
  EXPECT_THAT(problems_.Lines(), IsEmpty());
}

TEST_F(ProblemsTest, ForgetsAJobWithoutItsAllocations) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  problems_.Note("job j cannot go on", absl::InternalError("no"), {.job = "j"});
  problems_.Note("allocation j.1 cannot be stopped", absl::InternalError("no"),
                 {.at = {"hpc", "j.1"}});
  problems_.ForgetJob("j");
  EXPECT_THAT(problems_.Lines(), ElementsAre("allocation j.1 cannot be stopped: no"));
  problems_.ForgetAllocations([](const AllocationAt& at) { return at.compute == "hpc"; });
  EXPECT_THAT(problems_.Lines(), IsEmpty());
}

}  // namespace
}  // namespace tutti::service
