// Inputs from a store that is away, by a program that stands in for tutti-storage. Covers:
// hooks/inputs_hook.cc.
#include "absl/strings/match.h"
#include "platform/launch/launcher_fixture.h"
#include "platform/launch/storage_program_double.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class LauncherInputs : public LauncherFixture {
 protected:
  LauncherInputs() {
    const fs::path program = folder.path() / "tutti-storage";
    EXPECT_TRUE(base::WriteFileAtomic(program, kStorageProgramDouble, 0755).ok());
    EXPECT_TRUE(base::MakeDirectories(Store() / "objects/train").ok());
    EXPECT_TRUE(base::WriteFileAtomic(Store() / "objects/train/a", "a\n").ok());
    ::setenv("TUTTI_STORAGE_PROGRAM", program.c_str(), 1);
  }
  ~LauncherInputs() override { ::unsetenv("TUTTI_STORAGE_PROGRAM"); }

  fs::path Store() const { return folder.path() / "store"; }
  void Refuse(const std::string& kind) const {
    ASSERT_TRUE(base::WriteFileAtomic(Store() / "refuse", kind).ok());
  }
  spec::LaunchPlan PlanOf(const std::string& command) const {
    spec::LaunchPlan plan = Plan(command);
    plan.environments_directory = (folder.path() / "home/environments").string();
    plan.inputs["data"] = {.type = "uri_folder"};
    plan.inputs["data"].place = {
        .kind = spec::StoreKind::kS3, .container = "sets", .path = "train"};
    return plan;
  }
  // Returns a plan with a table that names what PlanOf's input has, and a file of this machine.
  spec::LaunchPlan PlanOfTable(const std::string& mode, const std::string& command) const {
    const fs::path local = folder.path() / "b.csv";
    EXPECT_TRUE(base::WriteFileAtomic(local, "b\n").ok());
    spec::LaunchPlan plan = PlanOf(absl::StrCat("cd ${{inputs.data}} && ", command));
    spec::Input stored = plan.inputs["data"];
    plan.inputs["data"] = {.type = "mltable", .mode = mode};
    stored.mode = mode == "eval_mount" ? "ro_mount" : "download";
    stored.table = "data";
    stored.placed = "sets";
    plan.inputs["data.paths[0]"] = stored;
    plan.inputs["data.paths[1]"] = {.type = "uri_file",
                                    .path = local.string(),
                                    .mode = stored.mode,
                                    .table = "data",
                                    .placed = "local/b.csv"};
    return plan;
  }
  // Returns a plan with a pattern that matches files of this machine, whose names the job prints.
  spec::LaunchPlan PlanOfPattern(const std::string& mode, const std::string& pattern,
                                 const std::string& then) const {
    const fs::path local = folder.path() / "local";
    for (const char* file : {"a.png", "dogs/b.png", "dogs/c.txt", "dogs/deep/d[1].png"}) {
      EXPECT_TRUE(base::MakeDirectories((local / file).parent_path()).ok());
      EXPECT_TRUE(base::WriteFileAtomic(local / file, "it\n").ok());
    }
    spec::LaunchPlan plan =
        Plan(absl::StrCat("cd ${{inputs.data}} && find . ! -type d | sort && ", then));
    plan.inputs["data"] = {
        .type = "uri_folder", .path = local.string(), .mode = mode, .pattern = pattern};
    return plan;
  }
  // Whether the last word on what holds the node up has that text.
  bool AwaitHeld(const std::string& text) {
    return service.Await(
        [&] {
          const auto held = service.Events("held");
          return !held.empty() && absl::StrContains(std::string(held.back()["note"]), text);
        },
        base::Patient(absl::Seconds(30)));
  }
};

TEST_F(LauncherInputs, WaitForTheirStoreAndSaySoInTheStateAndInTheLog) {
  Refuse("network");
  base::ChildProcess launcher = Launch(PlanOf("cat ${{inputs.data}}/a"));
  ASSERT_TRUE(AwaitHeld("input \"data\": the store takes nothing; the job waits for the store"));
  EXPECT_TRUE(
      AwaitOutput("tutti: input \"data\": the store takes nothing; the job waits", 0, "stderr"));
  EXPECT_TRUE(service.Events("prepared").empty());
  fs::remove(Store() / "refuse");
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "a\n");
  EXPECT_THAT(service.Output(0, "stderr"),
              HasSubstr("tutti: input \"data\": its store answers again after "));
  EXPECT_EQ(service.Events("held").back()["note"], "");
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
}

TEST_F(LauncherInputs, OfATableAreLinksToTheFilesThatItsPathsName) {
  EXPECT_TRUE(Run(PlanOfTable("eval_mount",
                              "cat sets/a local/b.csv && find . -type l | wc -l && "
                              "env | grep -c ^AZUREML_DATAREFERENCE_"))
                  .ok());
  EXPECT_EQ(service.Output(0, "stdout"), "a\nb\n2\n1\n");
}

TEST_F(LauncherInputs, OfATableAreCopiesThatAreTheJobsOwn) {
  EXPECT_TRUE(Run(PlanOfTable("eval_download",
                              "find . -type f | sort && echo mine >>local/b.csv"
                              " && cat local/b.csv"))
                  .ok());
  EXPECT_EQ(service.Output(0, "stdout"), "./local/b.csv\n./sets/a\nb\nmine\n");
  EXPECT_EQ(base::ReadFile(folder.path() / "b.csv").value_or(""), "b\n");
}

TEST_F(LauncherInputs, OfAPatternOnThisMachineAreLinksToWhatItMatches) {
  EXPECT_TRUE(Run(PlanOfPattern("ro_mount", "**/*.png", "[ -L dogs/deep/d[1].png ]")).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "./a.png\n./dogs/b.png\n./dogs/deep/d[1].png\n");
}

TEST_F(LauncherInputs, OfAPatternOnThisMachineAreCopiesIfItSaysSo) {
  // Classes are a table's alone: the name has these brackets.
  EXPECT_TRUE(
      Run(PlanOfPattern("download", "dogs/**/d[1].png", "echo mine >>dogs/deep/d[1].png")).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "./dogs/deep/d[1].png\n");
  EXPECT_EQ(base::ReadFile(folder.path() / "local/dogs/deep/d[1].png").value_or(""), "it\n");
}

TEST_F(LauncherInputs, WaitNoLongerOnceTheLauncherIsToldToEnd) {
  Refuse("network");
  base::ChildProcess launcher = Launch(PlanOf("true"));
  ASSERT_TRUE(AwaitHeld("the job waits for the store"));
  ASSERT_EQ(::kill(launcher.pid(), SIGTERM), 0);
  WaitFor(launcher);
  EXPECT_TRUE(service.Events("started").empty());
  EXPECT_EQ(service.Events("finished").at(0)["ok"], false);
}

TEST_F(LauncherInputs, FailTheJobOnceTheirStoreSaysThatItNeverGivesThem) {
  Refuse("network");
  base::ChildProcess launcher = Launch(PlanOf("true"));
  ASSERT_TRUE(AwaitHeld("the job waits for the store"));
  Refuse("not_found");
  WaitFor(launcher);
  EXPECT_EQ(service.Events("finished").at(0)["ok"], false);
  EXPECT_EQ(service.Events("finished").at(0)["reason"], "input \"data\": the store takes nothing");
  EXPECT_EQ(service.Events("held").back()["note"], "");
}

}  // namespace
}  // namespace tutti::launch
