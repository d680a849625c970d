#include "platform/launch/environment/part_binding.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <thread>

namespace tutti::launch {
namespace {
using ::testing::ElementsAre;
using ::testing::IsEmpty;

spec::LaunchPlan PlanWithPart(std::vector<int> cores, int ranks) {
  spec::LaunchPlan plan;
  plan.nodes.push_back({.name = "n1", .address = "127.0.0.1", .process_count = ranks});
  plan.cores = std::move(cores);
  return plan;
}

std::vector<int> OwnCoresNow() {
  cpu_set_t set;
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

TEST(PartBinding, RanksShareItsProcessorsOut) {
  const spec::LaunchPlan plan = PlanWithPart({2, 3, 5, 6, 7}, 2);
  EXPECT_THAT(CoresOfRank(plan, 0), ElementsAre(2, 3));
  EXPECT_THAT(CoresOfRank(plan, 1), ElementsAre(5, 6, 7));
  EXPECT_THAT(CoresOfRank(PlanWithPart({4, 5}, 3), 2), ElementsAre(4, 5));
  EXPECT_THAT(CoresOfRank(PlanWithPart({}, 3), 2), IsEmpty());
}

TEST(PartBinding, TheLauncherKeepsToItAndKnowsOfNoMore) {
  std::thread([] {  // whose affinity ends with it; the other threads' is put back
    const std::vector<int> all = OwnCoresNow();
    NodeFacts facts{.gpus = {"0", "1"}, .cores = 64};
    ASSERT_TRUE(KeepToPart(PlanWithPart({}, 1), facts).ok());
    EXPECT_EQ(facts.cores, 64);
    spec::LaunchPlan plan = PlanWithPart({all.back()}, 1);
    plan.gpus = {"1"};
    ASSERT_TRUE(KeepToPart(plan, facts).ok());
    EXPECT_THAT(OwnCoresNow(), ElementsAre(all.back()));
    EXPECT_EQ(facts.cores, 1);
    EXPECT_THAT(facts.gpus, ElementsAre("1"));
    ASSERT_TRUE(KeepToPart(PlanWithPart(all, 1), facts).ok());
  })
      .join();
}

TEST(PartBinding, ProcessorsThatAreNotThereAreAnError) {
  NodeFacts facts;
  const absl::Status status = KeepToPart(PlanWithPart({1022, 1023}, 1), facts);
  EXPECT_THAT(std::string(status.message()),
              ::testing::StartsWith("cannot run on processors 1022-1023: "));
}

TEST(PartBinding, ARankEntersItsOwn) {
  std::thread([] {
    const std::vector<int> all = OwnCoresNow();
    EXPECT_EQ(RankCores(PlanWithPart({}, 1), 0).Enter(), 0);
    EXPECT_EQ(OwnCoresNow(), all);
    EXPECT_EQ(RankCores(PlanWithPart({all.front()}, 1), 0).Enter(), 0);
    EXPECT_THAT(OwnCoresNow(), ElementsAre(all.front()));
  }).join();
}

TEST(PartBinding, TheProcessorsThatOthersHaveLeftAreKnown) {
  std::thread([] {
    const std::vector<int> all = OwnCoresNow();
    if (static_cast<long>(all.size()) == ::sysconf(_SC_NPROCESSORS_ONLN)) {
      EXPECT_THAT(CoresIfNotAll(), IsEmpty());
    }
    if (all.size() < 2) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(all.back(), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_THAT(CoresIfNotAll(), ElementsAre(all.back()));
  }).join();
}

TEST(PartBinding, ListsProcessorsAsTheKernelDoes) {
  EXPECT_EQ(CoreList({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(CoreList({}), "");
}

}  // namespace
}  // namespace tutti::launch
