// A job's processes have its inputs read-only, whatever they do to their modes. Covers:
// hooks/read_only_hook.cc.
#include "base/process/read_only_view.h"
#include "platform/launch/launcher_fixture.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSpoil[] =
    "cd ${{inputs.set}}; chmod u+w . a 2>/dev/null; echo x >a; rm -f a b; echo x >new; "
    "cat a; cd -; echo mine >work && echo left >${{outputs.out}}/left";

class ReadOnlyInputs : public LauncherFixture {
 protected:
  ReadOnlyInputs() { PutSet(folder.path() / "set"); }

  static void PutSet(const fs::path& set) {
    EXPECT_TRUE(base::MakeDirectories(set).ok());
    EXPECT_TRUE(base::WriteFileAtomic(set / "a", "one\n").ok());
  }
  static bool MayMake(const fs::path& path) { return base::ReadOnlyView::Make({{path}, {}}).ok(); }

  spec::LaunchPlan Spoiler() const {
    spec::LaunchPlan plan = Plan(kSpoil);
    plan.environments_directory = (folder.path() / "home/environments").string();
    plan.inputs["set"] = {.path = (folder.path() / "set").string()};
    plan.outputs["out"] = {};
    return plan;
  }
  // "" if the job has none.
  std::string Note() const {
    const auto prepared = service.Events("prepared");
    return prepared.size() == 1 ? prepared[0].value("note", "") : "no event";
  }
};

TEST_F(ReadOnlyInputs, AJobThatWritesToOneGetsAnErrorAndWritesElsewhere) {
  if (!MayMake(folder.path())) GTEST_SKIP() << "this machine lets this user make no namespace";
  EXPECT_TRUE(Run(Spoiler()).ok());
  EXPECT_THAT(service.Output(0, "stderr"), HasSubstr("Read-only file system"));
  EXPECT_THAT(service.Output(0, "stdout"), HasSubstr("one\n"));
  EXPECT_EQ(*base::ReadFile(folder.path() / "set/a"), "one\n");
  EXPECT_FALSE(fs::exists(folder.path() / "set/new"));
  EXPECT_EQ(service.Files().at("outputs/out/left"), "left\n");
  EXPECT_EQ(Note(), "");
  EXPECT_THAT(service.Events("exited").at(0).value("read_only", ""),
              HasSubstr("Read-only file system"));
}

TEST_F(ReadOnlyInputs, OneAboveTheJobsOwnFolderLeavesThatWritable) {
  if (!MayMake(folder.path())) GTEST_SKIP() << "this machine lets this user make no namespace";
  spec::LaunchPlan plan = Spoiler();
  PutSet(folder.path());
  plan.inputs["set"].path = folder.path().string();
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_THAT(service.Output(0, "stderr"), HasSubstr("Read-only file system"));
  EXPECT_EQ(*base::ReadFile(folder.path() / "a"), "one\n");
  EXPECT_EQ(service.Files().at("outputs/out/left"), "left\n");
}

TEST_F(ReadOnlyInputs, OfAPatternOfATableAreTheFilesThatMatch) {
  if (!MayMake(folder.path())) GTEST_SKIP() << "this machine lets this user make no namespace";
  spec::LaunchPlan plan =
      Plan("echo x >${{inputs.t}}/set/a; echo new >" + (folder.path() / "set/b").string());
  plan.environments_directory = (folder.path() / "home/environments").string();
  plan.inputs["t"] = {.type = "mltable", .mode = "eval_mount"};
  plan.inputs["t.paths[0]"] = {.path = folder.path().string(), .table = "t", .pattern = "*/a"};
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_THAT(service.Output(0, "stderr"), HasSubstr("Read-only file system"));
  EXPECT_EQ(*base::ReadFile(folder.path() / "set/a"), "one\n");
  EXPECT_EQ(*base::ReadFile(folder.path() / "set/b"), "new\n");
}

TEST_F(ReadOnlyInputs, ACopyIsTheJobsOwnToWrite) {
  spec::LaunchPlan plan = Spoiler();
  plan.inputs["set"].mode = "download";
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_THAT(service.Output(0, "stderr"), Not(HasSubstr("Read-only file system")));
  EXPECT_EQ(*base::ReadFile(folder.path() / "set/a"), "one\n");
  EXPECT_FALSE(fs::exists(folder.path() / "set/new"));
}

TEST_F(ReadOnlyInputs, APathAsItStandsIsTheFolderItself) {
  spec::LaunchPlan plan = Spoiler();
  plan.inputs["set"].mode = "direct";
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(*base::ReadFile(folder.path() / "set/new"), "x\n");
}

TEST_F(ReadOnlyInputs, AJobMayDoWithoutAndWhatItHadOfTheCacheIsLookedAtAnew) {
  const fs::path version = folder.path() / "home/data/0123456789abcdef01234567";
  PutSet(version / "content/set");
  spec::LaunchPlan plan = Spoiler();
  plan.inputs["set"].path = (version / "content/set").string();
  plan.environment_variables["TUTTI_READ_ONLY_INPUTS"] = "0";
  EXPECT_TRUE(Run(plan).ok());
  EXPECT_EQ(*base::ReadFile(version / "content/set/new"), "x\n");
  EXPECT_TRUE(fs::exists(version / "exposed"));
  EXPECT_EQ(Note(), "");
}

}  // namespace
}  // namespace tutti::launch
