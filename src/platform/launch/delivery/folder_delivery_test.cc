// A launcher that does not reach the service and the collector that delivers for it: what the
// service gets is what it would get over HTTP.
// Covers: collector.cc, folder_exchange.cc, launcher_calls.cc, upload.cc.
#include <sys/mount.h>

#include <cstdlib>
#include <fstream>

#include "absl/cleanup/cleanup.h"
#include "platform/launch/delivery/collector.h"
#include "platform/launch/delivery/folder_exchange.h"
#include "platform/launch/launcher_fixture.h"
#include "platform/launch/storage_program_double.h"

namespace tutti::launch {
namespace {

using ::testing::HasSubstr;

constexpr char kCollectorVariable[] = "TUTTI_TEST_COLLECTOR";

// When the test program is told to be a collector it is one, and runs no test.
class BeCollector : public ::testing::Environment {
 public:
  void SetUp() override {
    const char* const root = std::getenv(kCollectorVariable);
    if (root == nullptr) return;
    const std::filesystem::path folder = root;
    constexpr absl::Duration kWordEvery = absl::Milliseconds(200);
    ::_exit(RunCollector(folder / "shared", folder / "service.json", kWordEvery).ok() ? 0 : 1);
  }
};
const auto* const kBeCollector = ::testing::AddGlobalTestEnvironment(new BeCollector);

class FolderDeliveryTest : public LauncherFixture {
 protected:
  // The launcher's plan has the shared folder as its own in `shared/0`.
  spec::LaunchPlan SharedPlan(std::string command, int processes = 1) const {
    spec::LaunchPlan plan = Plan(std::move(command), processes);
    plan.directory = node().root.string();
    plan.service_file.clear();
    EXPECT_TRUE(base::MakeDirectories(node().root).ok());
    EXPECT_TRUE(base::WriteFileAtomic(node().plan(), spec::ToJson(plan)).ok());
    return plan;
  }
  NodeFolders node() const { return NodeFolders(folder.path() / "shared" / "0"); }

  base::ChildProcess Collect() const {
    base::ChildOptions options;
    options.arguments = {"/proc/self/exe"};
    options.environment = base::CurrentEnvironment();
    options.environment[kCollectorVariable] = folder.path().string();
    options.die_with_parent = true;
    auto child = base::ChildProcess::Start(options);
    EXPECT_TRUE(child.ok()) << child.status();
    return *std::move(child);
  }
  static void Kill(base::ChildProcess& child) {
    ASSERT_TRUE(child.SignalGroup(SIGKILL).ok());
    WaitFor(child);
  }
  void OpenGate() const { ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "gate", "").ok()); }
  std::string AtGate() const {
    return absl::StrCat("while [ ! -e ", (folder.path() / "gate").string(),
                        " ]; do sleep 0.01; done; ");
  }
};

TEST_F(FolderDeliveryTest, EventsOutputAndResultsComeByTheCollector) {
  base::ChildProcess launcher =
      Launch(SharedPlan("echo out $RANK; echo err $RANK >&2; mkdir -p outputs; echo made "
                        ">outputs/of-$RANK; exit $RANK",
                        2));
  base::ChildProcess collector = Collect();
  EXPECT_TRUE(WaitFor(collector).ok());
  EXPECT_TRUE(WaitFor(launcher).ok());
  for (int rank : {0, 1}) {
    EXPECT_EQ(service.Output(rank, "stdout"), absl::StrCat("out ", rank, "\n"));
    EXPECT_EQ(service.Output(rank, "stderr"), absl::StrCat("err ", rank, "\n"));
    EXPECT_EQ(service.Files()[absl::StrCat("outputs/of-", rank)], "made\n");
  }
  ASSERT_EQ(service.Events("finished").size(), 1u);
  EXPECT_TRUE(service.Events("finished")[0]["ok"]);
  EXPECT_EQ(service.duplicates(), 0);
  EXPECT_TRUE(std::filesystem::exists(node().done()));
}

TEST_F(FolderDeliveryTest, WhatTheLauncherHasFoundIsSentWhateverItIsCalled) {
  base::ChildProcess launcher = Launch(
      SharedPlan("cd outputs; echo a >\"$(printf 'a\\nb')\"; mkdir c; echo d >c/d; ln -s c e; "
                 "mkfifo pipe"));
  base::ChildProcess collector = Collect();
  EXPECT_TRUE(WaitFor(collector).ok());
  WaitFor(launcher);
  EXPECT_EQ(service.Files()["outputs/a\nb"], "a\n");
  EXPECT_EQ(service.Files()["outputs/c/d"], "d\n");
  EXPECT_EQ(service.Files()["outputs/e/d"], "d\n");
  EXPECT_EQ(service.Events("finalizing").at(0)["left_out"],
            nlohmann::json{"outputs/pipe (a pipe)"});
}

TEST_F(FolderDeliveryTest, AResultThatTheCollectorCannotReadFailsTheJobByName) {
  base::ChildProcess launcher = Launch(SharedPlan("echo a >outputs/a; echo b >outputs/b"));
  ASSERT_TRUE(service.Await([&] {
    const auto written = base::ReadFile(node().written());
    return written.ok() && WrittenFromJson(*written).results;
  }));
  ASSERT_TRUE(std::filesystem::remove(node().work_outputs() / "a"));
  base::ChildProcess collector = Collect();
  EXPECT_TRUE(WaitFor(collector).ok());
  WaitFor(launcher);
  EXPECT_EQ(service.Files()["outputs/b"], "b\n");
  EXPECT_FALSE(service.Events("finished").at(0)["ok"]);
  EXPECT_THAT(service.Events("finished").at(0)["reason"].get<std::string>(),
              HasSubstr("sending outputs/a: "));
}

TEST_F(FolderDeliveryTest, WhatWasStoredComesAfterTheResults) {
  const std::filesystem::path program = folder.path() / "tutti-storage";
  ASSERT_TRUE(base::WriteFileAtomic(program, kStorageProgramDouble, 0755).ok());
  ASSERT_TRUE(base::MakeDirectories(folder.path() / "store").ok());
  spec::LaunchPlan plan = SharedPlan("echo b >${{outputs.model}}/b");
  plan.outputs["model"].place = {.path = "/share/model", .datastore = "share", .root = "/share"};
  ASSERT_TRUE(base::WriteFileAtomic(node().plan(), spec::ToJson(plan)).ok());
  ::setenv("TUTTI_STORAGE_PROGRAM", program.c_str(), 1);
  base::ChildProcess launcher = Launch(plan);
  ::unsetenv("TUTTI_STORAGE_PROGRAM");
  base::ChildProcess collector = Collect();
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_TRUE(WaitFor(collector).ok());
  EXPECT_EQ(service.Files()["outputs/model/b"], "b\n");
  EXPECT_THAT(service.Files()["logs/stored/model.node-0.json"], HasSubstr("\"path\": \"b\""));
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
}

TEST_F(FolderDeliveryTest, WhateverEndsMeanwhileNoByteIsLostOrDoubled) {
  base::ChildProcess launcher = Launch(SharedPlan(absl::StrCat(
      "i=0; while [ $i -lt 1000 ]; do echo $i; i=$((i+1)); done; ", AtGate(), "echo end")));
  base::ChildProcess first = Collect();
  ASSERT_TRUE(AwaitOutput("999\n"));
  Kill(first);
  service.Stop();
  OpenGate();
  base::ChildProcess second = Collect();
  base::ChildProcess third = Collect();  // waits for the second
  service.LoseEvery(2);
  service.Start();
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_TRUE(WaitFor(second).ok());
  EXPECT_TRUE(WaitFor(third).ok());
  std::string expected;
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&expected, i, "\n");
  EXPECT_EQ(service.Output(0, "stdout"), expected + "end\n");
  EXPECT_EQ(service.Events("started").size(), 1u);
  EXPECT_EQ(service.Events("finished").size(), 1u);
}

TEST_F(FolderDeliveryTest, OutputThatTheServiceCannotTakeYetHoldsNothingElse) {
  service.PutOutputOff(true);
  base::ChildProcess launcher =
      Launch(SharedPlan(absl::StrCat("echo out $RANK; ", AtGate(), "exit $RANK"), 2));
  base::ChildProcess collector = Collect();
  ASSERT_TRUE(service.Await([&] { return service.put_off() > 0; }));
  OpenGate();
  EXPECT_TRUE(service.AwaitEvent("exited", 2));
  service.PutOutputOff(false);
  EXPECT_TRUE(WaitFor(collector).ok());
  EXPECT_TRUE(WaitFor(launcher).ok());
  for (int rank : {0, 1}) {
    EXPECT_EQ(service.Output(rank, "stdout"), absl::StrCat("out ", rank, "\n"));
  }
  EXPECT_EQ(service.duplicates(), 0);
}

TEST_F(FolderDeliveryTest, NothingIsReadBeyondWhatTheLauncherHasFlushed) {
  spec::LaunchPlan plan = SharedPlan("");
  ASSERT_TRUE(base::MakeDirectories(node().spool()).ok());
  const auto write = [&](const std::filesystem::path& file, const std::string& text) {
    ASSERT_TRUE(base::WriteFileAtomic(file, text).ok());
  };
  write(node().stream(0, "stdout"), "seen" + std::string(8, '\0'));
  write(node().events(), "{\"kind\": \"preparing\"}\n{\"kind\": \"finished\", \"ok\"");
  write(node().written(), ToJson(Written{.events = 1, .streams = {{"rank-0.stdout", 4}}}));
  base::ChildProcess collector = Collect();
  ASSERT_TRUE(AwaitOutput("seen"));
  ASSERT_TRUE(service.AwaitEvent("preparing"));
  write(node().stream(0, "stdout"), "seen and more");
  write(node().events(), "{\"kind\": \"preparing\"}\n{\"kind\": \"finished\", \"ok\": true}\n");
  write(node().stream(0, "mpirun"), "orted");
  write(node().written(),
        ToJson(Written{.events = 1, .streams = {{"rank-0.stdout", 13}, {"rank-0.mpirun", 5}}}));
  ASSERT_TRUE(AwaitOutput("seen and more"));
  ASSERT_TRUE(AwaitOutput("orted", 0, "mpirun"));
  EXPECT_EQ(service.Events().size(), 1u);
  write(node().written(), ToJson(Written{.events = 2, .streams = {{"rank-0.stdout", 13}}}));
  EXPECT_TRUE(WaitFor(collector).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "seen and more");
}

TEST_F(FolderDeliveryTest, ALauncherOfAGangIsHeardOfAlsoWhileItHasNothingToSay) {
  spec::LaunchPlan plan = SharedPlan(AtGate());
  plan.boot_id.clear();
  plan.nodes.push_back({"n2", "127.77.0.2", 1, 1});
  ASSERT_TRUE(base::WriteFileAtomic(node().plan(), spec::ToJson(plan)).ok());
  ::setenv("TUTTI_BEAT", "0.2", 1);
  base::ChildProcess launcher = Launch(plan);
  ::unsetenv("TUTTI_BEAT");
  base::ChildProcess collector = Collect();
  ASSERT_TRUE(service.AwaitEvent("started"));
  EXPECT_EQ(service.Events("preparing").at(0)["beat"], 0.2);
  const int before = service.requests();
  EXPECT_TRUE(service.Await([&] { return service.requests() >= before + 3; }));
  EXPECT_EQ(service.Events().size(), 3u);
  OpenGate();
  EXPECT_TRUE(WaitFor(launcher).ok());
  Kill(collector);  // the other node says nothing
}

TEST_F(FolderDeliveryTest, OnAFullDiskALauncherIsHeardOfAndTellsAllOnceThereIsRoom) {
  const std::filesystem::path shared = folder.path() / "shared", filler = shared / "filler";
  ASSERT_TRUE(base::MakeDirectories(shared).ok());
  if (::mount("tmpfs", shared.c_str(), "tmpfs", 0, "size=2m") != 0) {
    GTEST_SKIP() << "may not mount a small tmpfs";
  }
  const absl::Cleanup unmount = [&] { ::umount2(shared.c_str(), MNT_DETACH); };
  spec::LaunchPlan plan = SharedPlan(absl::StrCat(
      AtGate(), "i=0; while [ $i -lt 40000 ]; do echo line $i; i=$((i+1)); done; echo >outputs/a"));
  plan.boot_id.clear();
  plan.nodes.push_back({"n2", "127.77.0.2", 1, 1});
  ASSERT_TRUE(base::WriteFileAtomic(node().plan(), spec::ToJson(plan)).ok());
  ::setenv("TUTTI_BEAT", "0.2", 1);
  base::ChildProcess launcher = Launch(plan);
  ::unsetenv("TUTTI_BEAT");
  base::ChildProcess collector = Collect();
  ASSERT_TRUE(service.AwaitEvent("started"));
  {
    std::ofstream fill(filler);
    const std::string block(4096, 'x');
    while (fill << block << std::flush) {
    }
  }
  const int before = service.requests();
  EXPECT_TRUE(service.Await([&] { return service.requests() >= before + 3; }));
  OpenGate();
  const base::Deadline patience = base::Deadline::After(absl::Seconds(1));
  ASSERT_TRUE(service.Await([&] { return patience.Expired(); }));
  EXPECT_TRUE(service.Events("exited").empty());
  std::filesystem::remove(filler);
  EXPECT_TRUE(WaitFor(launcher).ok());
  Kill(collector);  // the other node says nothing
  EXPECT_THAT(service.Output(0, "stdout"), ::testing::EndsWith("\nline 39999\n"));
  ASSERT_FALSE(service.Events("held").empty());
  EXPECT_EQ(service.Events("held").back()["note"], "");
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
}

TEST_F(FolderDeliveryTest, AServiceWhoseDiskIsFullIsWaitedForLongerThanOneThatIsAway) {
  constexpr absl::Duration kLimit = absl::Seconds(4);
  service.PutOutputOff(true);
  service.PutResultsOff(true);
  base::ChildProcess launcher =
      LaunchWithin(SharedPlan("echo out; mkdir -p outputs; echo made >outputs/a"), kLimit);
  base::ChildProcess collector = Collect();
  ASSERT_TRUE(service.AwaitEvent("finalizing"));
  TakeNothingFor(1.5 * kLimit);
  service.PutOutputOff(false);
  service.PutResultsOff(false);
  EXPECT_TRUE(WaitFor(collector).ok());
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_EQ(service.Output(0, "stdout"), "out\n");
  EXPECT_EQ(service.Files()["outputs/a"], "made\n");
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
}

TEST_F(FolderDeliveryTest, OnlyAChangeOfTheCountIsASignOfLife) {
  SharedPlan("");
  ASSERT_TRUE(base::MakeDirectories(node().spool()).ok());
  const auto write = [&](const std::filesystem::path& file, const std::string& text) {
    ASSERT_TRUE(base::WriteFileAtomic(file, text).ok());
  };
  write(node().events(), "{\"kind\": \"preparing\"}\n{\"kind\": \"finished\"}\n");
  write(node().written(), ToJson(Written{.events = 1, .beats = 7}));
  base::ChildProcess collector = Collect();
  ASSERT_TRUE(service.AwaitEvent("preparing"));
  EXPECT_EQ(service.requests(), 1) << "which was there before it came tells nothing";
  write(node().written(), ToJson(Written{.events = 1, .beats = 8}));
  ASSERT_TRUE(service.Await([&] { return service.requests() == 2; }));
  write(node().written(), ToJson(Written{.events = 2, .beats = 8}));
  EXPECT_TRUE(WaitFor(collector).ok());
  EXPECT_EQ(service.requests(), 3);
}

TEST_F(FolderDeliveryTest, AnAllocationThatTheServiceForgotEnds) {
  base::ChildProcess launcher = Launch(SharedPlan("echo up; sleep 600"));
  base::ChildProcess collector = Collect();
  ASSERT_TRUE(AwaitOutput("up\n"));
  service.Forget();
  ASSERT_EQ(::kill(launcher.pid(), SIGTERM), 0);  // as the engine; its end is nobody's
  EXPECT_TRUE(WaitFor(collector).ok());
  WaitFor(launcher);
  EXPECT_TRUE(NoProcessLeft());
}

TEST_F(FolderDeliveryTest, CodeThatCannotBeHadIsTold) {
  service.SetSnapshot("no such bytes");
  spec::LaunchPlan plan = SharedPlan("true");
  plan.snapshot = "sha256:0123";
  ASSERT_TRUE(base::WriteFileAtomic(node().plan(), spec::ToJson(plan)).ok());
  base::ChildProcess launcher = Launch(plan);
  base::ChildProcess collector = Collect();
  EXPECT_TRUE(WaitFor(launcher).ok());
  EXPECT_TRUE(WaitFor(collector).ok());
  ASSERT_EQ(service.Events("finished").size(), 1u);
  EXPECT_THAT(service.Events("finished")[0]["reason"].get<std::string>(),
              HasSubstr("code: the service sent other bytes"));
}

TEST(FolderExchange, WhatIsNoDocumentSaysNothing) {
  for (const char* text :
       {"", "{", "[1]", R"({"events": -1, "rank-0.stdout": "x", "results": 7})"}) {
    EXPECT_EQ(WrittenFromJson(text), Written{}) << text;
    EXPECT_EQ(AcknowledgedFromJson(text), Acknowledged{}) << text;
  }
  const Acknowledged word{.events = 3,
                          .streams = {{"rank-1.stderr", 9}},
                          .go = true,
                          .served = true,
                          .code = "",
                          .results = "disk full",
                          .results_lists = 2};
  EXPECT_EQ(AcknowledgedFromJson(ToJson(word)), word);
  const Written written{.events = 3,
                        .streams = {{"rank-1.stderr", 9}},
                        .results = true,
                        .results_lists = 2,
                        .beats = 2};
  EXPECT_EQ(WrittenFromJson(ToJson(written)), written);
}

}  // namespace
}  // namespace tutti::launch
