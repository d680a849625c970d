#include "platform/launch/delivery/beat.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tutti::launch {
namespace {

spec::LaunchPlan PlanOf(size_t nodes, const std::string& boot_id) {
  spec::LaunchPlan plan;
  plan.nodes.resize(nodes);
  plan.boot_id = boot_id;
  return plan;
}

TEST(Beat, IsPromisedByLaunchersOfGangsOnClustersAlone) {
  EXPECT_EQ(BeatOf(PlanOf(2, "")), absl::Minutes(1));
  EXPECT_EQ(BeatOf(PlanOf(1, "")), absl::ZeroDuration());
  EXPECT_EQ(BeatOf(PlanOf(2, "a machine's")), absl::ZeroDuration());
}

TEST(Beat, MayBeSetAndWhatIsNoneChangesNothing) {
  const auto with = [](const char* text) {
    ::setenv("TUTTI_BEAT", text, 1);
    const absl::Duration beat = BeatOf(PlanOf(2, ""));
    ::unsetenv("TUTTI_BEAT");
    return beat;
  };
  EXPECT_EQ(with("2.5"), absl::Seconds(2.5));
  for (const char* wrong : {"", "soon", "0", "-1", "1e9", "nan"}) {
    EXPECT_EQ(with(wrong), absl::Minutes(1)) << wrong;
  }
}

}  // namespace
}  // namespace tutti::launch
