#include "platform/service/allocation/plan_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::service {
namespace {

using ::testing::SizeIs;

// Returns the queues of nine pipelines of forty steps, each of which reads a file of that folder.
std::set<std::string> QueuesOfNine(const std::string& folder) {
  std::set<std::string> queues;
  for (int pipeline = 0; pipeline < 9; ++pipeline) {
    for (int step = 0; step < 40; ++step) {
      queues.insert(PlaceOfPlan(absl::StrCat("p", pipeline), {absl::StrCat(folder, "/", step)},
                                "/home/jobs/", {{"/", "ext4"}, {"/far", "nfs"}, {"/home", "nfs"}})
                        .queue);
    }
  }
  return queues;
}

TEST(PlanQueue, PipelinesThatReadFromOneServerShareAFewQueues) {
  EXPECT_THAT(QueuesOfNine("/far/data"), SizeIs(kPlanQueues));
  EXPECT_THAT(QueuesOfNine("/home/data"), SizeIs(kPlanQueues));
}

TEST(PlanQueue, PipelinesThatReadFromThisMachineOrItsResultsHaveSomeEach) {
  EXPECT_THAT(QueuesOfNine("/data"), SizeIs(9 * kPlanQueues));
  EXPECT_THAT(QueuesOfNine("https://example.com"), SizeIs(9 * kPlanQueues));
  EXPECT_THAT(QueuesOfNine("/home/jobs/first/outputs"), SizeIs(9 * kPlanQueues));
}

TEST(PlanQueue, ALinkLeadsToTheServer) {
  base::TemporaryDirectory folder;
  std::filesystem::create_symlink("/far/data", folder.path() / "link");
  const std::string linked = folder.path() / "link/x";
  const std::vector<base::Mount> mounts = {{"/", "ext4"}, {"/far", "nfs"}};
  EXPECT_EQ(PlaceOfPlan("p", {linked}, "/jobs/", mounts).queue.substr(0, 5), "/far/");
  EXPECT_EQ(PlaceOfPlan("p", {linked}, "/jobs/", {{"/", "ext4"}}).queue.substr(0, 2), "p/");
}

TEST(PlanQueue, StepsWithTheSameInputsShareOne) {
  const std::vector<base::Mount> mounts = {{"/", "ext4"}};
  EXPECT_EQ(PlaceOfPlan("p", {"/a", "/b"}, "/jobs/", mounts).queue,
            PlaceOfPlan("p", {"/a", "/b"}, "/jobs/", mounts).queue);
}

}  // namespace
}  // namespace tutti::service
