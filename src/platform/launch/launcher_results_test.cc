// Tests what a launcher sends of its job's results while its processes run, and at their end.
// Covers: node_processes.cc, questions/answerers.cc, delivery/upload.cc.
#include "platform/launch/launcher_fixture.h"

namespace tutti::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class LauncherResults : public LauncherFixture {
 protected:
  // A launcher that is told once that the service knows no questions asks no more.
  LauncherResults() { service.AskForResults("q0", "no file has this name"); }
  // Returns a plan whose process writes `first`, and `then` once the gate is open.
  spec::LaunchPlan PlanOf(const std::string& first, const std::string& then) const {
    return Plan(absl::StrCat(first, "; echo begun; while [ ! -e ", gate_,
                             " ]; do sleep 0.01; done; ", then));
  }
  void OpenGate() const { ASSERT_TRUE(base::WriteFileAtomic(gate_, "").ok()); }
  // Asks, and waits for the answer.
  spec::SentResults Ask(const std::string& question, const std::string& name = "",
                        absl::Duration time = absl::Hours(1)) {
    service.AskForResults(question, name, time);
    EXPECT_TRUE(service.Await([&] { return service.SentResults().contains(question); },
                              base::Patient(absl::Seconds(30))));
    return service.SentResults()[question];
  }

  // Waits until a change of what lies there would show in its times (answerers.cc).
  void AwaitOldFiles() {
    const base::Deadline old = base::Deadline::After(absl::Milliseconds(2100));
    ASSERT_TRUE(service.Await([&] { return old.Expired(); }, base::Patient(absl::Seconds(30))));
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
  AwaitOldFiles();
  const spec::SentResults again = Ask("q2");
  EXPECT_GE(again.files, 2);  // half.tmp may have been too new before
  EXPECT_EQ(again.error, "");
  EXPECT_THAT(again.present,
              Optional(UnorderedElementsAre("outputs/loss", "outputs/more", "outputs/half.tmp")));
  EXPECT_EQ(Ask("q3").files, 0);
  ASSERT_TRUE(base::WriteFileAtomic(outputs_ + "/more", "y").ok());
  EXPECT_EQ(Ask("q4").files, 1);
  ASSERT_TRUE(base::WriteFileAtomic(outputs_ + "/more", "x").ok());
  EXPECT_EQ(Ask("q5").bytes, 1);
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
  const spec::SentResults sent = Ask("q1", "tfevents");
  EXPECT_EQ(sent.bytes, 2);
  EXPECT_FALSE(sent.present);
  EXPECT_THAT(service.FilesSoFar(),
              UnorderedElementsAre(Pair("outputs/events.out.tfevents.7", "2\n")));
  OpenGate();
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(service.Files().size(), 2u);
}

TEST_F(LauncherResults, ThatTakeTooLongAreMissedAndTheNextQuestionGoesOnThere) {
  base::ChildProcess launcher =
      Launch(PlanOf("head -c 300000 /dev/zero >outputs/large; head -c 400000 /dev/zero "
                    ">outputs/larger; echo 1 >outputs/loss",
                    "true"));
  ASSERT_TRUE(AwaitOutput("begun"));
  AwaitOldFiles();
  service.HoldFile("outputs/larger");
  const spec::SentResults first = Ask("q1", "", base::Patient(absl::Seconds(6)));
  EXPECT_EQ(first.files, 2);
  EXPECT_EQ(first.bytes, 300'002);
  EXPECT_THAT(first.error, AllOf(HasSubstr("1 of 3 files"), HasSubstr("--wait")));
  service.HoldFile("");
  const spec::SentResults next = Ask("q2");
  EXPECT_EQ(next.files, 1);
  EXPECT_EQ(next.bytes, 400'000);
  EXPECT_EQ(next.error, "");
  OpenGate();
  EXPECT_TRUE(WaitFor(launcher).ok());
}

TEST_F(LauncherResults, ThatAreRefusedHoldUpNoOther) {
  base::ChildProcess launcher =
      Launch(PlanOf("echo 1 >outputs/loss; echo 2 >outputs/refused", "rm outputs/refused"));
  ASSERT_TRUE(AwaitOutput("begun"));
  AwaitOldFiles();
  const spec::SentResults first = Ask("q1");
  EXPECT_EQ(first.files, 1);
  EXPECT_THAT(first.error, AllOf(HasSubstr("1 of 2 files"), HasSubstr("this name may not be")));
  EXPECT_EQ(Ask("q2").files, 0);
  OpenGate();
  EXPECT_TRUE(WaitFor(launcher).ok());
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
