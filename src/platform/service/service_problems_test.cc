// Tests what the service says is broken, for as long as it is.
// Covers: allocation/observer.cc, allocation/engine_calls.cc.
#include <gmock/gmock.h>

#include "platform/service/cluster_for_tests.h"
#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

using store::JobState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(ServiceTest, AllocationsThatAreOverAreNoProblemAnyMore) {
  const std::string id = world_.Submit()->record.job.id;
  ASSERT_TRUE(world_.StepUntilState(id, JobState::kPreparing));
  const std::string allocation = world_.engine().Allocations().at(0);
  world_.launchers().silent = true;
  world_.engine().fail_stop = absl::UnavailableError("no answer");
  ASSERT_TRUE(service().Cancel(id).ok());
  world_.Step();
  const std::string problem =
      absl::StrCat("allocation ", allocation, " cannot be stopped: no answer");
  EXPECT_THAT(service().Problems(), ElementsAre(problem));
  for (int node = 0; node < 2; ++node) world_.launchers().Kill(allocation, node);
  world_.launchers().silent = false;
  ASSERT_TRUE(world_.StepUntilOver(id));
  world_.Step();
  EXPECT_THAT(service().Problems(), IsEmpty());
}

TEST_F(ServiceTest, WhatALauncherLeftIsSaidOfItsJobAndAmongTheProblemsForAsLongAsItIsThere) {
  const std::string id = world_.Submit()->record.job.id;
  ASSERT_TRUE(world_.StepUntilState(id, JobState::kPreparing));
  const std::string allocation = world_.engine().Allocations().at(0);
  world_.engine().left = "the containers on n1: podman rm: its storage is locked";
  ASSERT_TRUE(world_.StepUntil([&] { return !service().Problems().empty(); }));
  EXPECT_THAT(service().Problems(),
              ElementsAre(absl::StrCat("allocation ", allocation,
                                       " does not end: ", world_.engine().left)));
  ASSERT_TRUE(world_.StepUntil([&] { return world_.Reason(id) == world_.engine().left; }))
      << world_.Reason(id);
  world_.engine().left = "";
  ASSERT_TRUE(world_.StepUntil([&] { return service().Problems().empty(); }));
  ASSERT_TRUE(world_.StepUntilOver(id));
}

TEST(ServiceProblems, AJobThatIsCanceledIsNoProblemAnyMore) {
  const base::TemporaryDirectory folder;
  DiskEngine::Put(folder.path() / "site.yml", "computes: {hpc: {type: slurm, folder: ./shared}}\n");
  FakeCluster cluster;
  World world(folder.path(), {}, 2, &cluster);
  cluster.fail_start = absl::UnavailableError("no answer");
  ASSERT_TRUE(world.Submit(absl::StrCat(kJobFile, "compute: hpc\n")).ok());
  world.Step();
  EXPECT_THAT(world.service().Problems(), ElementsAre("job j cannot be handed over: no answer"));
  ASSERT_TRUE(world.service().Cancel("j").ok());
  EXPECT_THAT(world.service().Problems(), IsEmpty());
}

}  // namespace
}  // namespace tutti::service
