// Which limits a plan has, and each of those that need no ranks (launcher_test.cc has the others).
// Covers: memory_limit.cc, process_count_limit.cc, time_limit.cc, mpi_world_limit.cc.
#include "platform/launch/limits/limits.h"

#include <poll.h>

#include "platform/launch/ranks/starter_fixture.h"

namespace tutti::launch {
namespace {

class LimitsTest : public StarterFixture {
 protected:
  LimitContext OfPlan(int most_processes = 1000) {
    limit.emplace(plan, 0);
    return {plan, facts, ranks.get(), *limit, most_processes};
  }
};

// The limit of a plan whose ranks form an MPI world and have not joined it yet.
class MpiWorldLimitTest : public LimitsTest {
 protected:
  void SetUp() override {
    plan.distribution.type = "mpi";
    auto listening = PmiServer::Listen(plan);
    ASSERT_TRUE(listening.ok()) << listening.status();
    pmi = *std::move(listening);
    LimitContext context = OfPlan();
    context.pmi = pmi.get();
    world_limit = MakeMpiWorldLimit(context);
    EXPECT_FALSE(world_limit->Look().has_value());
  }
  std::unique_ptr<PmiServer> pmi;
  std::unique_ptr<Limit> world_limit;
};

TEST_F(LimitsTest, AreThoseThatThePlanAndItsRanksNeed) {
  EXPECT_EQ(LimitsOf(OfPlan()).size(), 1u) << "no cgroup counts the processes";
  plan.timeout_seconds = 60;
  plan.memory_bytes = 1 << 30;
  facts.pmi = "127.0.0.1:4711";
  EXPECT_EQ(LimitsOf(OfPlan()).size(), 4u);
}

TEST_F(LimitsTest, OfMemoryIsThePlansOrForContainersSlurms) {
  facts.own = {{"TUTTI_GANG", "n7 10.0.0.7;"}, {"SLURM_MEM_PER_NODE", "2048"}};
  EXPECT_EQ(MemoryShareOf(OfPlan()), 0) << "Slurm holds it";
  plan.environment.image = {"a.example/b:1", "", "", "job.yml:7"};
  EXPECT_EQ(MemoryShareOf(OfPlan()), int64_t{2} << 30);
  EXPECT_EQ(LimitsOf(OfPlan()).size(), 2u);
  plan.memory_bytes = 1 << 30;
  EXPECT_EQ(MemoryShareOf(OfPlan()), 1 << 30);
}

TEST_F(LimitsTest, OfTimeIsHeldUntilTheProcessesAreToEnd) {
  plan.timeout_seconds = 0.001;
  const auto limit = MakeTimeLimit(OfPlan());
  EXPECT_LE(limit->UntilNextLook(/*ending=*/false), absl::Milliseconds(1));
  EXPECT_EQ(limit->UntilNextLook(/*ending=*/true), absl::InfiniteDuration());
  const auto order = limit->Look();
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(order->reason.message(), "wall time limit of 0.001 s reached");
  EXPECT_FALSE(order->grace.has_value());
}

TEST_F(MpiWorldLimitTest, IsHeldUntilARankLeavesTheWorld) {
  EXPECT_EQ(world_limit->UntilNextLook(/*ending=*/true), absl::InfiniteDuration());
  pmi->Serve({});
  const base::UniqueFd zero = ComeTo(*pmi, InitOf(0));
  const base::UniqueFd one = ComeTo(*pmi, InitOf(1) + "cmd=abort exitcode=3\n");
  std::optional<StopOrder> order;
  for (const auto deadline = Soon(); !order && !deadline.Expired();) order = world_limit->Look();
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(order->reason.message(), "rank 1 called MPI_Abort with exit code 3");
  ASSERT_EQ(Events("mpi_failure").size(), 1u);
  EXPECT_EQ(Events("mpi_failure")[0]["rank"], 1);
}

TEST_F(MpiWorldLimitTest, IsLookedAtOnceARankAborts) {
  pmi->Serve({});
  const base::UniqueFd alone = ComeTo(*pmi, InitOf(0) + "cmd=abort exitcode=3\n");
  pollfd news{pmi->news().fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&news, 1, Soon().RemainingMillis()), 1);
  EXPECT_EQ(world_limit->UntilNextLook(/*ending=*/false), absl::ZeroDuration());
  EXPECT_TRUE(world_limit->Look().has_value());
}

TEST_F(LimitsTest, OfProcessesEndsThemAtOnce) {
  base::ChildOptions child;
  child.arguments = {"sleep", "600"};
  child.environment = base::CurrentEnvironment();
  auto running = base::ChildProcess::Start(child);
  ASSERT_TRUE(running.ok());
  EXPECT_FALSE(MakeProcessCountLimit(OfPlan(1000))->Look().has_value());
  const auto order = MakeProcessCountLimit(OfPlan(0))->Look();
  ASSERT_TRUE(order.has_value());
  EXPECT_TRUE(absl::IsResourceExhausted(order->reason));
  EXPECT_EQ(order->grace, absl::ZeroDuration());
  ::kill(running->pid(), SIGKILL);
  EXPECT_TRUE(running->Wait(Soon()).ok());
}

}  // namespace
}  // namespace tutti::launch
