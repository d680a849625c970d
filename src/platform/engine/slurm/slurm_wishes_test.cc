// Wishes for the nodes that have a job's data.
// Covers: slurm_wishes.cc, slurm_allocation.cc.
#include <gmock/gmock.h>

#include "platform/engine/slurm/slurm_engine_test_support.h"

namespace tutti::engine {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class SlurmWishesTest : public SlurmEngineTest {
 protected:
  SlurmWishesTest() { OpenUnshared(); }

  static Allocation Wishing(const std::string& id, std::vector<std::string> nodes, int size = 1) {
    Allocation gang = Gang(id, size);
    gang.prefer = std::move(nodes);
    return gang;
  }
  // From now on wishes are lifted soon.
  void OpenImpatient() {
    preferring_ = absl::Milliseconds(20);
    Open();
  }
  std::vector<std::string> Submitted(const Allocation& allocation) {
    const int before = slurm_.count("sbatch");
    EXPECT_TRUE(engine_->Start(allocation).ok());
    EXPECT_TRUE(CountReaches("sbatch", before + 1));
    return slurm_.last_sbatch();
  }
  bool IsOnRecord(const std::string& id, const char* file = "wish") const {
    return std::filesystem::exists(root_.path() / "shared" / id / file);
  }
};

TEST_F(SlurmWishesTest, LeaveOutTheOtherNodesUntilTheJobHasItsOwn) {
  EXPECT_TRUE(engine_->traits().caches_by_node);
  slurm_.Hold(true);
  EXPECT_THAT(Submitted(Wishing("a.1", {"n2"})), Contains("--exclude=n1"));
  EXPECT_THAT(listening_.last("sinfo"), Contains("--partition=main"));
  const AllocationState waits = Await("a.1", [](const AllocationState& s) {
    return s.waits && absl::StrContains(s.reason, "Resources");
  });
  EXPECT_THAT(waits.reason, HasSubstr("for some seconds only for those that have its data"));
  EXPECT_TRUE(IsOnRecord("a.1"));
  slurm_.Hold(false);
  AwaitRunning("a.1");
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return !IsOnRecord("a.1"); }));
  EXPECT_EQ(listening_.calls("scontrol"), 0);
}

TEST_F(SlurmWishesTest, AreNotMadeWhereTheNodesAreTakenOrTheJobNamesItsOwn) {
  slurm_.SetRoom("n1|idle|0/4/0/4|main*\nn2|allocated|4/0/0/4|main*\n");
  EXPECT_THAT(Submitted(Wishing("a.1", {"n2"})), Not(Contains(HasSubstr("--exclude"))));
  Allocation named = Wishing("b.1", {"n1"});
  named.slurm.options = {"--nodelist=n2"};
  EXPECT_THAT(Submitted(named), Not(Contains(HasSubstr("--exclude"))));
  slurm_.SetFault("sinfo", SlurmCommandsFake::Fault::kDown);
  EXPECT_THAT(Submitted(Wishing("c.1", {"n1"})), Not(Contains(HasSubstr("--exclude"))));
  EXPECT_FALSE(IsOnRecord("a.1") || IsOnRecord("b.1") || IsOnRecord("c.1"));
}

TEST_F(SlurmWishesTest, NobodyIsAskedForRoomWithoutAWishNorWhereNodesShareAFolder) {
  Submitted(Gang("a.1"));
  node_folder_.clear();
  Open();
  EXPECT_FALSE(engine_->traits().caches_by_node);
  EXPECT_THAT(Submitted(Wishing("b.1", {"n2"})), Not(Contains(HasSubstr("--exclude"))));
  EXPECT_EQ(listening_.calls("sinfo"), 0);
}

TEST_F(SlurmWishesTest, ASecondJobThatWaitsDoesNotWishForWhatTheFirstIsToGet) {
  slurm_.Hold(true);
  slurm_.SetRoom("n1|idle|0/4/0/4|main*\nn2|mixed|3/1/0/4|main*\n");
  EXPECT_THAT(Submitted(Wishing("a.1", {"n2"})), Contains("--exclude=n1"));
  EXPECT_THAT(Submitted(Wishing("b.1", {"n2"})), Not(Contains(HasSubstr("--exclude"))));
}

TEST_F(SlurmWishesTest, AreLiftedWhereTheJobWaitsForThemTooLong) {
  OpenImpatient();
  slurm_.Hold(true);
  Allocation gang = Wishing("a.1", {"n2"});
  gang.slurm.options = {"--exclude=n9"};
  EXPECT_THAT(Submitted(gang), Contains("--exclude=n9,n1"));
  ASSERT_TRUE(CountReaches("scontrol", 1));
  EXPECT_EQ(listening_.last("scontrol"),
            (std::vector<std::string>{"scontrol", "update", "JobId=1", "ExcNodeList=n9"}));
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return !IsOnRecord("a.1"); }));
  EXPECT_THAT(State("a.1").reason, Not(HasSubstr("data")));
  slurm_.Hold(false);
  AwaitRunning("a.1");
  EXPECT_EQ(slurm_.count("sbatch"), 1);
}

TEST_F(SlurmWishesTest, AreLiftedByTheEngineThatComesAfterTheOneThatMadeThem) {
  slurm_.Hold(true);
  EXPECT_THAT(Submitted(Wishing("a.1", {"n2"})), Contains("--exclude=n1"));
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    return std::filesystem::exists(root_.path() / "shared/a.1/slurm-id");
  }));
  OpenImpatient();
  ASSERT_TRUE(CountReaches("scontrol", 1));
  EXPECT_THAT(listening_.last("scontrol"), Contains("ExcNodeList="));
}

TEST_F(SlurmWishesTest, AreTriedToBeLiftedUntilSlurmAnswers) {
  OpenImpatient();
  slurm_.Hold(true);
  slurm_.SetFault("scontrol", SlurmCommandsFake::Fault::kDown);
  Submitted(Wishing("a.1", {"n2"}));
  listening_.AwaitCalls("scontrol", 4);
  EXPECT_TRUE(IsOnRecord("a.1"));
  EXPECT_EQ(slurm_.count("scancel"), 0);
  slurm_.SetFault("scontrol", SlurmCommandsFake::Fault::kNone);
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return !IsOnRecord("a.1"); }));
}

TEST_F(SlurmWishesTest, AJobWhoseWishSlurmDoesNotLiftIsSubmittedAnewWithoutIt) {
  OpenImpatient();
  slurm_.Hold(true);
  slurm_.SetFault("scontrol", SlurmCommandsFake::Fault::kRefuse);
  EXPECT_THAT(Submitted(Wishing("a.1", {"n2"})), Contains("--exclude=n1"));
  ASSERT_TRUE(CountReaches("sbatch", 2));
  EXPECT_THAT(slurm_.last_sbatch(), Not(Contains(HasSubstr("--exclude"))));
  EXPECT_EQ(slurm_.state(1), "CANCELLED");
  slurm_.Hold(false);
  AwaitRunning("a.1");
  EXPECT_EQ(slurm_.count("sbatch"), 2);
  EXPECT_FALSE(IsOnRecord("a.1") || IsOnRecord("a.1", "retracted"));
}

TEST_F(SlurmWishesTest, AJobThatIsRetractedIsSubmittedAnewByTheEngineThatComesAfter) {
  slurm_.Hold(true);
  Submitted(Wishing("a.1", {"n2"}));
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    return std::filesystem::exists(root_.path() / "shared/a.1/slurm-id");
  }));
  engine_.reset();
  ASSERT_TRUE(base::WriteFileAtomic(root_.path() / "shared/a.1/retracted", "1").ok());
  slurm_.End("a.1", "CANCELLED");
  Open();
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());  // as services do when they begin
  EXPECT_TRUE(CountReaches("sbatch", 2));
}

TEST_F(SlurmWishesTest, NorDoesTheRecordOfARetractedOneEndItAfterAKillBeforeTheSecondSbatch) {
  OpenImpatient();
  slurm_.Hold(true);
  slurm_.SetFault("scontrol", SlurmCommandsFake::Fault::kRefuse);
  Submitted(Wishing("a.1", {"n2"}));
  slurm_.SetFault("sbatch", SlurmCommandsFake::Fault::kFull);
  const AllocationState full = Await("a.1", [](const AllocationState& s) {
    return absl::StrContains(s.reason, "as many jobs as may be");
  });
  ASSERT_TRUE(full.waits) << full.reason;
  engine_.reset();
  ASSERT_EQ(slurm_.state(1), "CANCELLED");
  ASSERT_FALSE(IsOnRecord("a.1", "slurm-id"));
  ASSERT_TRUE(IsOnRecord("a.1", "retracted"));
  slurm_.SetFault("sbatch", SlurmCommandsFake::Fault::kNone);
  const int polls = listening_.calls("squeue");
  Open();
  listening_.AwaitCallsInAll("squeue", polls + 1);
  ASSERT_TRUE(engine_->Start(Wishing("a.1", {"n2"})).ok());
  ASSERT_TRUE(CountReaches("sbatch", 2)) << State("a.1").reason;
  EXPECT_THAT(slurm_.last_sbatch(), Not(Contains(HasSubstr("--exclude"))));
  slurm_.Hold(false);
  AwaitRunning("a.1");
  EXPECT_TRUE(
      base::AwaitPatiently(absl::Seconds(20), [&] { return !IsOnRecord("a.1", "retracted"); }));
}

TEST_F(SlurmWishesTest, AJobWhoseNodesAreBeingMadeReadyIsNeitherLiftedNorRetracted) {
  slurm_.Hold(true);
  Submitted(Wishing("a.1", {"n2"}));
  slurm_.End("a.1", "CONFIGURING");
  const AllocationState boots = Await("a.1", [](const AllocationState& s) {
    return absl::StrContains(s.reason, "being made ready");
  });
  EXPECT_THAT(boots.reason, Not(HasSubstr("data")));
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return !IsOnRecord("a.1"); }));
  OpenImpatient();
  listening_.AwaitCalls("squeue", 4);
  EXPECT_EQ(listening_.calls("scontrol") + listening_.calls("scancel"), 0);
}

TEST_F(SlurmWishesTest, OneThatHasBegunMeanwhileIsNotOnRecordAsRetracted) {
  slurm_.Hold(true);
  Submitted(Wishing("a.1", {"n2"}));
  ASSERT_TRUE(
      base::AwaitPatiently(absl::Seconds(20), [&] { return IsOnRecord("a.1", "slurm-id"); }));
  engine_.reset();
  ASSERT_TRUE(base::WriteFileAtomic(root_.path() / "shared/a.1/retracted", "1").ok());
  slurm_.Hold(false);
  Open();
  EXPECT_TRUE(base::AwaitPatiently(
      absl::Seconds(20), [&] { return !IsOnRecord("a.1") && !IsOnRecord("a.1", "retracted"); }));
  AwaitRunning("a.1");
  EXPECT_EQ(slurm_.count("sbatch"), 1);
}

TEST_F(SlurmWishesTest, AReasonThatNoOtherNodeWouldMendSaysNothingOfData) {
  slurm_.Hold(true);
  Submitted(Wishing("a.1", {"n2"}));
  slurm_.End("a.1", "REQUEUE_HOLD");
  const AllocationState held =
      Await("a.1", [](const AllocationState& s) { return absl::StrContains(s.reason, "is held"); });
  EXPECT_THAT(held.reason, Not(HasSubstr("data")));
  EXPECT_TRUE(IsOnRecord("a.1"));
}

TEST_F(SlurmWishesTest, AnotherJobThatHasEndedCountsMoreThanTheRetractedOne) {
  slurm_.Hold(true);
  Submitted(Wishing("a.1", {"n2"}));
  ASSERT_TRUE(
      base::AwaitPatiently(absl::Seconds(20), [&] { return IsOnRecord("a.1", "slurm-id"); }));
  engine_.reset();  // killed while its second sbatch took effect
  const auto folder = root_.path() / "shared/a.1";
  ASSERT_TRUE(base::WriteFileAtomic(folder / "retracted", "1").ok());
  ASSERT_TRUE(base::RemoveTree(folder / "slurm-id").ok());
  slurm_.Double("a.1");
  slurm_.End("a.1", "CANCELLED");
  Open();
  EXPECT_THAT(AwaitEnd("a.1").reason, HasSubstr("it was cancelled in Slurm"));
  EXPECT_EQ(base::ReadFile(folder / "slurm-id").value_or(""), "2");
}

TEST_F(SlurmWishesTest, AJobThatIsCanceledMeanwhileEnds) {
  slurm_.Hold(true);
  Submitted(Wishing("a.1", {"n2"}));
  ASSERT_TRUE(engine_->Stop("a.1", absl::ZeroDuration()).ok());
  AwaitEnd("a.1");
  EXPECT_EQ(slurm_.count("sbatch"), 1);
}

TEST_F(SlurmWishesTest, OneThatSlurmRefusesWithItIsSubmittedWithoutAtOnce) {
  slurm_.SetFault("sbatch", SlurmCommandsFake::Fault::kRefuse);
  Allocation gang = Wishing("a.1", {"n2"});
  gang.avoid = {"n3"};
  ASSERT_TRUE(engine_->Start(gang).ok());
  EXPECT_THAT(AwaitEnd("a.1").reason, HasSubstr("Slurm refused it: "));
  EXPECT_EQ(listening_.calls("sbatch"), 3);  // then without those to avoid
  EXPECT_THAT(listening_.last("sbatch"), Not(Contains(HasSubstr("--exclude"))));
}

}  // namespace
}  // namespace tutti::engine
