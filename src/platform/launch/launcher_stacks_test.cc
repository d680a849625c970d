// Tests what a launcher answers when the service asks for the stacks of its ranks, and that its job
// does not suffer. Covers: node_processes.cc, delivery/service_delivery.cc,
// delivery/launcher_calls.cc.
#include "platform/launch/launcher_fixture.h"

namespace tutti::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kHangs[] =
    "exec /usr/bin/python3 -c 'import time; print(1, flush=True); time.sleep(1e6)'";

class LauncherStacks : public LauncherFixture {
 protected:
  // Makes a program of the shell's that launchers find from now on.
  void Tool(const std::string& name, const std::string& script) {
    ASSERT_TRUE(base::WriteFileAtomic(tools_ / name, "#!/bin/sh\n" + script, 0755).ok());
  }
  base::ChildProcess LaunchWithTools(const spec::LaunchPlan& plan) {
    const std::string path = std::getenv("PATH");
    ::setenv("PATH", absl::StrCat(tools_.native(), ":", path).c_str(), 1);
    base::ChildProcess launcher = Launch(plan);
    ::setenv("PATH", path.c_str(), 1);
    return launcher;
  }
  bool AwaitFile(const std::string& name) const {
    return service.Await([&] { return std::filesystem::exists(tools_ / name); },
                         base::Patient(absl::Seconds(30)));
  }
  bool AwaitStacks(size_t ranks) const {
    return service.Await([&] { return service.Stacks().size() == ranks; },
                         base::Patient(absl::Seconds(30)));
  }
  std::filesystem::path MakeTools() const {
    const std::filesystem::path tools = folder.path() / "tools";
    EXPECT_TRUE(base::MakeDirectories(tools).ok());
    return tools;
  }

  const std::filesystem::path tools_ = MakeTools();
};

TEST_F(LauncherStacks, AreThoseOfEachRank) {
  Tool("py-spy", "echo frames of $4");
  service.AskForStacks({0, 1});
  base::ChildProcess launcher = LaunchWithTools(Plan(kHangs, 2));
  ASSERT_TRUE(AwaitStacks(2));
  const auto stacks = service.Stacks();
  for (const int rank : {0, 1}) {
    const auto started = service.Events("started").at(rank);
    const spec::ProcessStacks process = stacks.at(started["rank"]).processes.at(0);
    EXPECT_EQ(process.pid, started["pid"]);
    EXPECT_EQ(process.python, absl::StrCat("frames of ", process.pid, "\n"));
  }
  ASSERT_TRUE(launcher.SignalGroup(SIGTERM).ok());
  WaitFor(launcher);
  EXPECT_TRUE(NoProcessLeft());
}

TEST_F(LauncherStacks, HoldNoJobUpThatIsToldToEndWhileToolsHang) {
  Tool("py-spy", "exit 1");
  Tool("gdb",
       "for word; do [ \"$last\" = -p ] && kill -STOP $word; last=$word; "
       "done; touch " +
           (tools_ / "hangs").native() + "; trap '' TERM; sleep 1000");
  service.AskForStacks({0, 1}, /*native=*/true);
  base::ChildProcess launcher = LaunchWithTools(Plan(kHangs, 2));
  ASSERT_TRUE(AwaitFile("hangs"));
  ASSERT_TRUE(launcher.SignalGroup(SIGTERM).ok());
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_TRUE(NoProcessLeft());
  ASSERT_EQ(service.Events("exited").size(), 2u);
  for (const auto& exited : service.Events("exited")) {
    EXPECT_EQ(exited["signal"], SIGTERM) << exited;  // and not SIGKILL, as one that stays stopped
  }
}

TEST_F(LauncherStacks, AreNothingToAJobThatEndsMeanwhile) {
  const std::string gate = (folder.path() / "gate").native();
  Tool("py-spy", "touch " + (tools_ / "hangs").native() + "; sleep 1000");
  service.AskForStacks({0});
  base::ChildProcess launcher = LaunchWithTools(
      Plan("/usr/bin/python3 -c 'import pathlib, sys, time\nwhile not pathlib.Path(\"" + gate +
           "\").exists(): time.sleep(0.01)'; echo end"));
  ASSERT_TRUE(AwaitFile("hangs"));
  ASSERT_TRUE(base::WriteFileAtomic(gate, "").ok());
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(service.Events("exited").at(0)["code"], 0);
  EXPECT_EQ(service.Output(0, "stdout"), "end\n");
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
  EXPECT_TRUE(NoProcessLeft());
}

TEST_F(LauncherStacks, AreNotAskedForByAServiceOfEarlier) {
  const std::string gate = (folder.path() / "gate").native();
  base::ChildProcess launcher =
      Launch(Plan("while [ ! -e " + gate + " ]; do sleep 0.01; done; echo end"));
  const base::Deadline later = base::Deadline::After(absl::Seconds(3));
  EXPECT_TRUE(service.Await([&] { return later.Expired(); }));
  ASSERT_TRUE(base::WriteFileAtomic(gate, "").ok());
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "end\n");
  EXPECT_TRUE(service.Stacks().empty());
}

}  // namespace
}  // namespace tutti::launch
