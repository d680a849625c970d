#include "platform/service/jobs/complaints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Nobody else has these: no lock is needed.
class ComplaintsTest : public ::testing::Test {
 protected:
  Complaints complaints_ ABSL_GUARDED_BY(service_lock);
};

TEST_F(ComplaintsTest, KeepsAFailureUntilItIsOver) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  complaints_.Note("the engine cannot be observed", absl::UnavailableError("it is away"));
  complaints_.Note("the engine cannot be observed", absl::UnavailableError("it is gone"));
  EXPECT_THAT(complaints_.Lines(), ElementsAre("the engine cannot be observed: it is gone"));
  complaints_.Note("the engine cannot be observed", absl::OkStatus());
  EXPECT_THAT(complaints_.Lines(), IsEmpty());
}

TEST_F(ComplaintsTest, ForgetsAJobWithoutItsAllocations) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  complaints_.Note("job j cannot go on", absl::InternalError("no"), {.job = "j"});
  complaints_.Note("allocation j.1 cannot be stopped", absl::InternalError("no"),
                   {.at = {"hpc", "j.1"}});
  complaints_.ForgetJob("j");
  EXPECT_THAT(complaints_.Lines(), ElementsAre("allocation j.1 cannot be stopped: no"));
  complaints_.ForgetAllocations([](const AllocationAt& at) { return at.compute == "hpc"; });
  EXPECT_THAT(complaints_.Lines(), IsEmpty());
}

}  // namespace
}  // namespace tutti::service
