// Outputs that go to a store, by a program that stands in for tutti-storage and whose store is a
// folder. Covers: hooks/stored_outputs_hook.cc, hooks/node_storage.cc, outputs/store_outputs.cc,
// process/own_children.cc, interruptible.cc.
#include <fstream>

#include "platform/launch/launcher_fixture.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

// Puts files as tutti-storage does. The store's folder has `refuse` while it takes nothing, and
// `hold` while a put has sent its first file and goes no further.
constexpr char kProgram[] = R"(#!/usr/bin/python3
import json, os, pathlib, shutil, sys, time
request = json.load(sys.stdin)
store = pathlib.Path(__file__).parent / "store"
def say(line):
    print(json.dumps(line), flush=True)
with open(store / "calls", "a") as calls:
    calls.write(request["credentials"].get("secret_access_key", "-") + "\n")
if (store / "refuse").exists():
    say({"error": {"kind": (store / "refuse").read_text(), "message": "the store takes nothing"}})
    sys.exit(1)
sent = []
for name in request["files"]:
    to = store / "objects" / request["place"]["path"] / name
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(pathlib.Path(request["folder"]) / name, to)
    with open(store / "sent", "a") as log:
        log.write(name + "\n")
    sent.append({"object": {"path": name, "bytes": to.stat().st_size, "etag": "e"}})
    while (store / "hold").exists():
        time.sleep(0.01)
for line in sent:
    say(line)
say({"done": {"objects": len(sent), "bytes": 1}})
)";

class LauncherOutputs : public LauncherFixture {
 protected:
  LauncherOutputs() {
    const fs::path program = folder.path() / "tutti-storage";
    EXPECT_TRUE(base::WriteFileAtomic(program, kProgram, 0755).ok());
    EXPECT_TRUE(base::MakeDirectories(Store()).ok());
    ::setenv("TUTTI_STORAGE_PROGRAM", program.c_str(), 1);
    service.SetSecrets(
        {{"datastore.sets", R"({"access_key_id": "a", "secret_access_key": "hush-hush"})"}});
  }
  ~LauncherOutputs() override { ::unsetenv("TUTTI_STORAGE_PROGRAM"); }

  fs::path Store() const { return folder.path() / "store"; }
  spec::LaunchPlan PlanOf(const std::string& command) const {
    spec::LaunchPlan plan = Plan(command);
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

TEST_F(LauncherOutputs, OfAJobThatFailedAreTriedOnceAndTheFailureIsNoted) {
  Mark("refuse", "credentials");
  EXPECT_TRUE(Run(PlanOf("echo b >${{outputs.model}}/b; exit 3")).ok());
  EXPECT_EQ(service.Events("exited").at(0)["code"], 3);
  const auto storing = service.Events("storing");
  EXPECT_THAT(std::string(storing.back()["note"]),
              AllOf(HasSubstr("give datastore sets credentials that may write to it"),
                    HasSubstr("is with the job's results")));
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
