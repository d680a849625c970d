#include "platform/launch/ranks/pmix_starter.h"

#include "platform/launch/ranks/starter_fixture.h"

namespace tutti::launch {
namespace {

class PmixStarterTest : public StarterFixture {
 protected:
  std::unique_ptr<RankStarter> Make(const std::string& srun = "exec sleep 600\n") {
    return MakeRankStarter(Context(), AgreeOn(MpiWay::kPmix, srun));
  }
  // Begins, and has the starter hear of srun's end.
  std::unique_ptr<RankStarter> RunToEnd(const std::string& srun) {
    std::unique_ptr<RankStarter> starter = Make(srun);
    EXPECT_TRUE(starter->Begin().ok());
    EXPECT_TRUE(starter->ReapIfOwn(AwaitChild()));
    return starter;
  }
};

TEST_F(PmixStarterTest, StartsARankInThePlaceThatATaskBringsAndTellsTheTaskItsEnd) {
  command = "exit $PMIX_RANK";
  const auto starter = Make();
  LineSocket task = Connect();
  ASSERT_TRUE(
      task.Send({{"kind", "pmix-task"}, {"rank", 1}, {"variables", {{"PMIX_RANK", "1"}}}}).ok());
  HandleUntil(*starter, [&] { return ranks->Find(1) != nullptr; });
  EXPECT_TRUE(ranks->Find(1)->is_child());
  EXPECT_TRUE(starter->running()) << "the other rank's place may come";
  starter->RankEnded(1, ranks->Reap(*ranks->Find(1), /*stopped=*/false));
  const auto end = task.Receive(Soon());
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ((*end)["code"], 1);
}

TEST_F(PmixStarterTest, APlaceThatComesTooLateIsEnded) {
  const auto starter = Make();
  supervisor.Stop(absl::CancelledError("told"));
  LineSocket task = Connect();
  ASSERT_TRUE(task.Send({{"kind", "pmix-task"}, {"rank", 0}}).ok());
  absl::StatusOr<std::optional<nlohmann::json>> end = std::nullopt;
  HandleUntil(*starter, [&] { return (end = task.Take()).ok() && end->has_value(); });
  EXPECT_EQ((**end)["code"], 1);
  EXPECT_TRUE(ranks->ranks().empty());
}

TEST_F(PmixStarterTest, CallsSrunAgainThatFoundNoController) {
  const auto starter =
      RunToEnd("echo 'srun: error: Unable to contact slurm controller' >&2; exit 1\n");
  EXPECT_FALSE(supervisor.stopped());
  EXPECT_TRUE(starter->running());
  EXPECT_LE(starter->UntilNextTask(), absl::Seconds(1));
  EXPECT_TRUE(starter->WhyNoneBegan().ok());
}

TEST_F(PmixStarterTest, KnowsThatSlurmHasTakenTheJobBack) {
  const auto starter = RunToEnd(
      "echo 'srun: error: Unable to confirm allocation for job 7: Job is pending execution' >&2; "
      "exit 1\n");
  EXPECT_THAT(std::string(starter->WhyNoneBegan().message()),
              ::testing::StartsWith("Slurm ended it before its ranks had begun: srun: error:"));
}

TEST_F(PmixStarterTest, AnSrunThatBringsNoPlaceIsNoFaultOfTheJob) {
  RunToEnd("exit 0\n");
  EXPECT_EQ(supervisor.reason(), "srun has ended without a place for every rank");
  EXPECT_TRUE(supervisor.unlaunched());
}

TEST_F(PmixStarterTest, SaysWhatSrunSaidOfPlacesThatDoNotCome) {
  options.rank_start_limit = absl::ZeroDuration();
  const auto starter = Make();
  starter->RunDueTasks();
  EXPECT_EQ(supervisor.reason(),
            "Slurm gave its ranks no place in PMIx (srun --mpi=pmix) within 0");
  EXPECT_TRUE(supervisor.unlaunched());
}

}  // namespace
}  // namespace tutti::launch
