#include <thread>

#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/ranks/starter_fixture.h"

namespace tutti::launch {
namespace {

// On the first node of a gang whose own ranks have ended.
class MpiHookTest : public StarterFixture {
 protected:
  MpiHookTest() {
    plan.distribution.type = "mpi";
    node.pmi = *PmiServer::Listen(plan);
    node.pmi->Serve({});
    node.events = events.get();
  }
  // Rank 0 comes, says `lines` and goes.
  void ComeAndGo(const std::string& lines) {
    {
      const base::UniqueFd rank = ComeTo(*node.pmi, InitOf(0));
      AwaitBusy(true);
      ::send(rank.get(), lines.data(), lines.size(), MSG_NOSIGNAL);
    }
    AwaitBusy(false);
  }

  NodeContext node{plan, delivery.get(), nullptr, &news, facts};

 private:
  void AwaitBusy(bool busy) {
    const base::Deadline deadline = Soon();
    while (node.pmi->busy() != busy && !deadline.Expired()) std::this_thread::yield();
    EXPECT_EQ(node.pmi->busy(), busy);
  }
};

TEST_F(MpiHookTest, ARankThatHasFinalizedIsNoFailure) {
  ComeAndGo("cmd=finalize\n");
  EXPECT_TRUE(MakeMpiHook()->AfterResults(node).ok());
  EXPECT_TRUE(Events("mpi_failure").empty());
}

TEST_F(MpiHookTest, AnAbortCountsAlsoAfterAllHaveGone) {
  ComeAndGo("cmd=abort exitcode=3\ncmd=finalize\n");
  EXPECT_EQ(MakeMpiHook()->AfterResults(node).message(),
            "rank 0 called MPI_Abort with exit code 3");
  ASSERT_EQ(Events("mpi_failure").size(), 1u);
  EXPECT_EQ(Events("mpi_failure")[0]["abort"], true);
}

}  // namespace
}  // namespace tutti::launch
