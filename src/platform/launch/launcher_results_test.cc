// What a launcher sends of its job's results while its processes run, and at their end. Covers:
// node_processes.cc, questions/answerers.cc, delivery/upload.cc.
#include "platform/launch/launcher_fixture.h"

namespace tutti::launch {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class LauncherResults : public LauncherFixture {
 protected:
  // Returns a plan whose process writes `first`, and `then` once the gate is open.
  spec::LaunchPlan PlanOf(const std::string& first, const std::string& then) const {
    return Plan(absl::StrCat(first, "; echo begun; while [ ! -e ", gate_,
                             " ]; do sleep 0.01; done; ", then));
  }
  void OpenGate() const { ASSERT_TRUE(base::WriteFileAtomic(gate_, "").ok()); }
  // Asks, and waits for the answer.
  spec::SentResults Ask(const std::string& question, const std::string& name = "") {
    service.AskForResults(question, name);
    EXPECT_TRUE(service.Await([&] { return service.SentResults().contains(question); },
                              base::Patient(absl::Seconds(30))));
    return service.SentResults()[question];
  }

  const std::string gate_ = (folder.path() / "gate").native();
  const std::string outputs_ = (folder.path() / "allocation" / "work" / "outputs").native();
};

TEST_F(LauncherResults, AreSentWhileTheJobRunsAndAtItsEndAsTheyAreThen) {
  base::ChildProcess launcher = Launch(PlanOf("echo 1 >outputs/loss; echo tmp >outputs/half.tmp",
                                              "rm outputs/half.tmp; echo 3 >>outputs/loss"));
  ASSERT_TRUE(AwaitOutput("begun"));
  EXPECT_EQ(Ask("q1").files, 2);
  EXPECT_THAT(service.FilesSoFar(),
              UnorderedElementsAre(Pair("outputs/loss", "1\n"), Pair("outputs/half.tmp", "tmp\n")));
  ASSERT_TRUE(base::WriteFileAtomic(outputs_ + "/loss", "1\n2\n").ok());
  ASSERT_TRUE(base::WriteFileAtomic(outputs_ + "/more", "x").ok());
  const spec::SentResults again = Ask("q2");
  EXPECT_GE(again.files, 2);
  EXPECT_EQ(again.error, "");
  EXPECT_EQ(service.FilesSoFar()["outputs/loss"], "1\n2\n");
  EXPECT_EQ(service.FilesSoFar()["outputs/more"], "x");
  EXPECT_THAT(service.Files(), IsEmpty());
  OpenGate();
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_THAT(service.Files(),
              UnorderedElementsAre(Pair("outputs/loss", "1\n2\n3\n"), Pair("outputs/more", "x")));
}

TEST_F(LauncherResults, AreThoseOfTheNameThatIsAskedFor) {
  base::ChildProcess launcher =
      Launch(PlanOf("mkdir outputs/tfevents; echo 1 >outputs/tfevents/model; "
                    "echo 2 >outputs/events.out.tfevents.7",
                    "true"));
  ASSERT_TRUE(AwaitOutput("begun"));
  EXPECT_EQ(Ask("q1", "tfevents").bytes, 2);
  EXPECT_THAT(service.FilesSoFar(),
              UnorderedElementsAre(Pair("outputs/events.out.tfevents.7", "2\n")));
  OpenGate();
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(service.Files().size(), 2u);
}

TEST_F(LauncherResults, ThatTheServiceDoesNotTakeHoldNoEndUp) {
  service.PutResultsOff(true);
  service.AskForResults();
  base::ChildProcess launcher = Launch(PlanOf("echo 1 >outputs/loss", "true"));
  ASSERT_TRUE(service.Await([&] { return service.results_put_off() > 0; }));
  OpenGate();
  ASSERT_TRUE(service.AwaitEvent("finalizing"));
  service.PutResultsOff(false);
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_THAT(service.Files(), UnorderedElementsAre(Pair("outputs/loss", "1\n")));
  EXPECT_THAT(service.FilesSoFar(), IsEmpty());
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
  EXPECT_TRUE(NoProcessLeft());
}

}  // namespace
}  // namespace tutti::launch
