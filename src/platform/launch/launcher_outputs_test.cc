// Outputs that go to a store, by a program that stands in for tutti-storage and whose store is a
// folder. Covers: hooks/stored_outputs_hook.cc, hooks/node_storage.cc, outputs/store_outputs.cc,
// process/own_children.cc, interruptible.cc.
#include <sys/stat.h>

#include "platform/launch/launcher_fixture.h"
#include "platform/launch/storage_program_double.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

class LauncherOutputs : public LauncherFixture {
 protected:
  LauncherOutputs() {
    const fs::path program = folder.path() / "tutti-storage";
    EXPECT_TRUE(base::WriteFileAtomic(program, kStorageProgramDouble, 0755).ok());
    EXPECT_TRUE(base::MakeDirectories(Store()).ok());
    ::setenv("TUTTI_STORAGE_PROGRAM", program.c_str(), 1);
    service.SetSecrets(
        {{"datastore.sets", R"({"access_key_id": "a", "secret_access_key": "hush-hush"})"}});
  }
  ~LauncherOutputs() override { ::unsetenv("TUTTI_STORAGE_PROGRAM"); }

  fs::path Store() const { return folder.path() / "store"; }
  spec::LaunchPlan PlanOf(const std::string& command) const {
    spec::LaunchPlan plan = Plan(command);
    plan.outputs["model"].mode = "upload";
    plan.environments_directory = (folder.path() / "environments").string();  // beside the cache
    plan.outputs["model"].place = {.kind = spec::StoreKind::kS3,
                                   .container = "sets",
                                   .path = "runs/${{name}}",
                                   .credential = spec::CredentialKind::kAccessKey,
                                   .secret = "datastore.sets",
                                   .datastore = "sets"};
    return plan;
  }
  std::string Object(const std::string& path) const {
    return base::ReadFile(Store() / "objects" / path).value_or("");
  }
  std::string Sent() const { return base::ReadFile(Store() / "sent").value_or(""); }
  void Mark(const std::string& name, const std::string& content = "") const {
    ASSERT_TRUE(base::WriteFileAtomic(Store() / name, content).ok());
  }
  bool Await(const std::function<bool()>& holds) const {
    return service.Await(holds, base::Patient(absl::Seconds(30)));
  }
};

TEST_F(LauncherOutputs, AreInTheStoreWhenTheJobIsOverWithAListOfThem) {
  EXPECT_TRUE(Run(PlanOf("mkdir ${{outputs.model}}/a; echo w >${{outputs.model}}/a/w; "
                         "echo b >${{outputs.model}}/b"))
                  .ok());
  EXPECT_EQ(Object("runs/job/a/w"), "w\n");
  EXPECT_EQ(Object("runs/job/b"), "b\n");
  const std::string list = Object("runs/job.stored.node-0.json");
  EXPECT_THAT(list, AllOf(HasSubstr("\"a/w\""), HasSubstr("\"whole\": true")));
  EXPECT_THAT(service.Files(), Contains(Pair("logs/stored/model.node-0.json", list)));
  EXPECT_THAT(service.Files(), Contains(Pair("outputs/model/b", "b\n")));
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
  EXPECT_THAT(std::string(service.Events("storing").at(0)["reason"]),
              HasSubstr("putting output \"model\" into"));
}

TEST_F(LauncherOutputs, ThatAreMountedBeginWithWhatTheirStoreHasWhichIsNotPutAgain) {
  ASSERT_TRUE(base::MakeDirectories(Store() / "objects/runs/job").ok());
  Mark("objects/runs/job/step", "1");
  Mark("objects/runs/job/notes", "kept");
  spec::LaunchPlan plan = PlanOf(
      "cat ${{outputs.model}}/step ${{outputs.model}}/notes; echo 2 >${{outputs.model}}/step");
  plan.outputs["model"].mode = "rw_mount";
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "1kept");
  EXPECT_EQ(Object("runs/job/step"), "2\n");
  EXPECT_EQ(Sent(), "step\njob.stored.node-0.json\n");
  EXPECT_THAT(Object("runs/job.stored.node-0.json"), Not(HasSubstr("notes")));
  EXPECT_THAT(service.Files(), Contains(Pair("outputs/model/step", "2\n")));
  EXPECT_THAT(service.Files(), Not(Contains(Pair("outputs/model/notes", "kept"))));
}

TEST_F(LauncherOutputs, ThatAreMountedWaitForTheirStore) {
  ASSERT_TRUE(base::MakeDirectories(Store() / "objects/runs/job").ok());
  Mark("objects/runs/job/step", "1");
  Mark("refuse", "network");
  spec::LaunchPlan plan = PlanOf("cat ${{outputs.model}}/step");
  plan.outputs["model"].mode = "rw_mount";
  base::ChildProcess launcher = Launch(plan);
  ASSERT_TRUE(AwaitOutput(
      "tutti: output \"model\": the store takes nothing; the job waits for the store since", 0,
      "stderr"));
  EXPECT_TRUE(service.Events("prepared").empty());
  fs::remove(Store() / "refuse");
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "1");
}

TEST_F(LauncherOutputs, ThatAreUploadedBeginEmpty) {
  ASSERT_TRUE(base::MakeDirectories(Store() / "objects/runs/job").ok());
  Mark("objects/runs/job/step", "1");
  EXPECT_TRUE(Run(PlanOf("ls ${{outputs.model}}")).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "");
}

TEST_F(LauncherOutputs, AreThereWhileTheJobRunsOnceTheyAreFinished) {
  base::ChildProcess launcher = Launch(PlanOf(
      absl::StrCat("echo a >${{outputs.model}}/a; until [ -e ", (folder.path() / "go").native(),
                   " ]; do sleep 0.02; done; echo b >${{outputs.model}}/b")));
  ASSERT_TRUE(Await([&] { return Object("runs/job/a") == "a\n"; }));
  EXPECT_TRUE(service.Events("exited").empty());
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "go", "").ok());
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(Sent(), "a\nb\njob.stored.node-0.json\n") << "each once";
}

TEST_F(LauncherOutputs, ArePutToTheEndWhenTheProcessesEndMeanwhile) {
  Mark("hold");
  base::ChildProcess launcher =
      Launch(PlanOf(absl::StrCat("echo a >${{outputs.model}}/a; until [ -e ",
                                 (folder.path() / "go").native(), " ]; do sleep 0.02; done")));
  ASSERT_TRUE(Await([&] { return Sent() == "a\n"; }));
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "go", "").ok());
  ASSERT_TRUE(service.AwaitEvent("finalizing"));
  fs::remove(Store() / "hold");
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(Sent(), "a\njob.stored.node-0.json\n") << "it was not ended with the processes";
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
}

TEST_F(LauncherOutputs, AreTriedAgainWhileTheStoreRefuses) {
  Mark("refuse", "network");
  base::ChildProcess launcher = Launch(PlanOf("echo b >${{outputs.model}}/b"));
  ASSERT_TRUE(Await([&] { return service.Events("storing").size() >= 2; }));
  EXPECT_THAT(std::string(service.Events("storing").at(1)["reason"]),
              AllOf(HasSubstr("output \"model\": the store takes nothing"),
                    HasSubstr("tried again until it is there")));
  EXPECT_TRUE(service.Events("finished").empty());
  fs::remove(Store() / "refuse");
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(Object("runs/job/b"), "b\n");
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
}

TEST_F(LauncherOutputs, GoOnAfterTheirLauncherWasKilledAndNothingOfTheJobIsLost) {
  Mark("hold");
  const spec::LaunchPlan plan =
      PlanOf("echo a >${{outputs.model}}/a; echo b >${{outputs.model}}/b");
  base::ChildProcess first = Launch(plan);
  ASSERT_TRUE(Await([&] { return Sent() == "a\n"; }));
  ASSERT_TRUE(first.SignalGroup(SIGKILL).ok());
  WaitFor(first);
  fs::remove(Store() / "hold");
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(Object("runs/job/a"), "a\n");
  EXPECT_EQ(Object("runs/job/b"), "b\n");
  EXPECT_TRUE(service.Events("lost").empty()) << "its processes had ended";
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
  EXPECT_TRUE(NoProcessLeft());
}

TEST_F(LauncherOutputs, WaitWithTheJobsResultsAtTheService) {
  Mark("refuse", "network");
  base::ChildProcess launcher = Launch(PlanOf("echo b >${{outputs.model}}/b"));
  ASSERT_TRUE(Await([&] { return service.Events("storing").size() >= 2; }));
  EXPECT_THAT(service.Files(), Contains(Pair("outputs/model/b", "b\n")));
  fs::remove(Store() / "refuse");
  EXPECT_TRUE(WaitFor(launcher).ok());
}

TEST_F(LauncherOutputs, OneFileThatIsRefusedIsToldAndKeepsNoOtherFromTheStore) {
  Mark("refuse-file", "a");
  base::ChildProcess launcher =
      Launch(PlanOf("for x in a b c; do echo $x >${{outputs.model}}/$x; done"));
  ASSERT_TRUE(Await([&] { return service.Events("storing").size() >= 2; }));
  EXPECT_THAT(std::string(service.Events("storing").at(1)["reason"]),
              AllOf(HasSubstr("it may not write this"), HasSubstr("give datastore sets")));
  EXPECT_EQ(Object("runs/job/b"), "b\n");
  EXPECT_EQ(Object("runs/job/c"), "c\n");
  fs::remove(Store() / "refuse-file");
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(Sent(), "b\nc\na\njob.stored.node-0.json\n");
}

TEST_F(LauncherOutputs, WhatOfThemIsNotPutIsToldOnceWithTheJobsResults) {
  EXPECT_TRUE(
      Run(PlanOf("echo b >${{outputs.model}}/b; ln -s nowhere ${{outputs.model}}/out")).ok());
  EXPECT_EQ(Object("runs/job/b"), "b\n");
  EXPECT_EQ(service.Events("finalizing").at(0)["left_out"].dump(),
            R"x(["outputs/model/out (a link to no file)"])x");
  for (const auto& event : service.Events("storing")) EXPECT_FALSE(event.contains("note"));
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
}

TEST_F(LauncherOutputs, OfOneStoreWaitForNoOther) {
  spec::LaunchPlan plan = PlanOf("echo a >${{outputs.model}}/a; echo b >${{outputs.other}}/b");
  plan.outputs["other"] = plan.outputs["model"];
  plan.outputs["other"].place->path = "other";
  Mark("refuse-file", "a");
  base::ChildProcess launcher = Launch(plan);
  ASSERT_TRUE(Await([&] { return Object("other.stored.node-0.json") != ""; }));
  EXPECT_EQ(Object("other/b"), "b\n");
  EXPECT_TRUE(service.Events("finished").empty());
  fs::remove(Store() / "refuse-file");
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(Object("runs/job/a"), "a\n");
}

TEST_F(LauncherOutputs, AFileMayBeCalledAsItsJob) {
  spec::LaunchPlan plan = PlanOf("echo m >${{outputs.model}}; basename ${{outputs.model}}");
  plan.outputs["model"].type = "uri_file";
  plan.outputs["model"].file = "${{name}}.pt";
  plan.outputs["model"].place->path = "runs/${{name}}.pt";
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "job.pt\n");
  EXPECT_EQ(Object("runs/job.pt"), "m\n");
}

// As the engine stops a job: the file, then the signal.
TEST_F(LauncherOutputs, OfACanceledJobThatEndsWith0AreTriedOnceAndWhatIsMissingIsTold) {
  Mark("refuse", "network");
  const spec::LaunchPlan plan = PlanOf(
      "trap 'exit 0' TERM; echo b >${{outputs.model}}/b; echo up; while :; do sleep 0.02; done");
  base::ChildProcess launcher = Launch(plan);
  ASSERT_TRUE(AwaitOutput("up\n"));
  ASSERT_TRUE(base::WriteFileAtomic(fs::path(plan.directory) / "stop", "").ok());
  ::kill(launcher.pid(), SIGTERM);
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(service.Events("exited").at(0)["code"], 0);
  EXPECT_THAT(std::string(service.Events("storing").back()["note"]),
              AllOf(HasSubstr("the store takes nothing"), HasSubstr("1 file (b)"),
                    HasSubstr("tutti job download")));
}

TEST_F(LauncherOutputs, OfAServerThatIsToldToEndAreTriedUntilTheyAreThere) {
  Mark("refuse", "network");
  service.Serve(true);
  const spec::LaunchPlan plan = PlanOf("echo b >${{outputs.model}}/b; echo up; exec sleep 600");
  base::ChildProcess launcher = Launch(plan);
  ASSERT_TRUE(AwaitOutput("up\n"));
  ASSERT_TRUE(base::WriteFileAtomic(fs::path(plan.directory) / "stop", "").ok());
  ::kill(launcher.pid(), SIGTERM);
  ASSERT_TRUE(Await([&] { return service.Events("storing").size() >= 2; }));
  EXPECT_THAT(std::string(service.Events("storing").at(1)["reason"]),
              HasSubstr("tried again until it is there"));
  fs::remove(Store() / "refuse");
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(Object("runs/job/b"), "b\n");
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
}

TEST_F(LauncherOutputs, ThatWereFinishedWhenTheirLauncherWasKilledAreStoredByTheNextOne) {
  Mark("refuse", "network");
  const fs::path allocation = folder.path() / "allocation";
  const spec::LaunchPlan plan = PlanOf(
      "echo whole >${{outputs.model}}/finished; while :; do printf ha "
      ">>${{outputs.model}}/half; sleep 0.1; done");
  base::ChildProcess first = Launch(plan);
  ASSERT_TRUE(Await([&] {
    struct stat finished = {}, alive = {};
    return ::stat((allocation / "outputs/model/finished").c_str(), &finished) == 0 &&
           ::stat((allocation / "stored/.alive").c_str(), &alive) == 0 &&
           absl::TimeFromTimespec(alive.st_mtim) - absl::TimeFromTimespec(finished.st_ctim) >
               absl::Seconds(10);
  }));
  ASSERT_TRUE(first.SignalGroup(SIGKILL).ok());
  WaitFor(first);
  fs::remove(Store() / "refuse");
  Run(plan);
  EXPECT_EQ(service.Events("lost").size(), 1u);
  EXPECT_EQ(Object("runs/job/finished"), "whole\n");
  EXPECT_EQ(Object("runs/job/half"), "") << "the store may have a whole one";
  EXPECT_THAT(Object("runs/job.stored.node-0.json"), HasSubstr("half (it was being written"));
  EXPECT_THAT(service.Files(), Contains(Pair("outputs/model/half", HasSubstr("ha"))));
}

TEST_F(LauncherOutputs, TheirLauncherIsNotedAsAliveWhileAPutTakesLong) {
  Mark("hold");
  base::ChildProcess launcher =
      Launch(PlanOf(absl::StrCat("echo a >${{outputs.model}}/a; until [ -e ",
                                 (folder.path() / "go").native(), " ]; do sleep 0.02; done")));
  ASSERT_TRUE(Await([&] { return Sent() == "a\n"; }));
  const auto alive = [&] {
    struct stat info = {};
    ::stat((folder.path() / "allocation/stored/.alive").c_str(), &info);
    return absl::TimeFromTimespec(info.st_mtim);
  };
  const absl::Time before = alive();
  EXPECT_TRUE(Await([&] { return alive() > before; }));
  EXPECT_EQ(Sent(), "a\n") << "which is being put";
  fs::remove(Store() / "hold");
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "go", "").ok());
  EXPECT_TRUE(WaitFor(launcher).ok());
}

TEST_F(LauncherOutputs, OfAJobThatFailedAreTriedOnceAndTheFailureIsNoted) {
  Mark("refuse", "credentials");
  EXPECT_TRUE(Run(PlanOf("echo b >${{outputs.model}}/b; exit 3")).ok());
  EXPECT_EQ(service.Events("exited").at(0)["code"], 3);
  const auto storing = service.Events("storing");
  EXPECT_THAT(std::string(storing.back()["note"]),
              AllOf(HasSubstr("give datastore sets credentials that may write to it"),
                    HasSubstr("1 file (b), which the job's results have")));
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true) << "its exit code says how it ended";
}

TEST_F(LauncherOutputs, WithoutCredentialsForThemTheJobDoesNotBegin) {
  service.SetSecrets({{"datastore.sets", "no credentials"}});
  EXPECT_TRUE(Run(PlanOf("echo began")).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "");
  const auto finished = service.Events("finished").at(0);
  EXPECT_EQ(finished["ok"], false);
  EXPECT_THAT(std::string(finished["reason"]), HasSubstr("output \"model\": "));
}

TEST_F(LauncherOutputs, AreGivenUpWhereNoTimeMendsIt) {
  Mark("refuse", "usage");
  EXPECT_TRUE(Run(PlanOf("echo b >${{outputs.model}}/b")).ok());
  const auto finished = service.Events("finished").at(0);
  EXPECT_EQ(finished["ok"], false);
  EXPECT_THAT(std::string(finished["reason"]),
              AllOf(HasSubstr("output \"model\": the store takes nothing"),
                    HasSubstr("tutti job download")));
  EXPECT_THAT(service.Files(), Contains(Pair("outputs/model/b", "b\n")));
}

TEST_F(LauncherOutputs, AreTriedAgainWhereTheStoreSaysWhatIsNotKnown) {
  Mark("refuse", "refused");
  base::ChildProcess launcher = Launch(PlanOf("echo b >${{outputs.model}}/b"));
  ASSERT_TRUE(Await([&] { return service.Events("storing").size() >= 2; }));
  EXPECT_TRUE(service.Events("finished").empty());
  fs::remove(Store() / "refuse");
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(Object("runs/job/b"), "b\n");
}

TEST_F(LauncherOutputs, TheirCredentialsLieNowhere) {
  EXPECT_TRUE(Run(PlanOf("env; cat /proc/$PPID/environ; echo b >${{outputs.model}}/b")).ok());
  EXPECT_THAT(base::ReadFile(Store() / "calls").value_or(""), HasSubstr("hush-hush"));
  EXPECT_THAT(service.Output(0, "stdout"), Not(HasSubstr("hush-hush")));
  for (const auto& entry : fs::recursive_directory_iterator(folder.path() / "allocation")) {
    if (!entry.is_regular_file()) continue;
    EXPECT_THAT(base::ReadFile(entry.path()).value_or(""), Not(HasSubstr("hush-hush")))
        << entry.path();
  }
}

}  // namespace
}  // namespace tutti::launch
