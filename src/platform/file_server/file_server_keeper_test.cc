// Tests with a program that stands in for NFS-Ganesha; tests/storage/test_file_server.py runs the
// real one.
// Covers: served_folder.cc.
#include "platform/file_server/file_server_keeper.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <thread>

#include "base/deadline.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "platform/file_server/served_folder.h"

namespace tutti::file_server {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class FileServerKeeperTest : public ::testing::Test {
 protected:
  FileServerKeeperTest() {
    EXPECT_TRUE(base::WriteFileAtomic(program_, "#!/bin/sh\nexec tail -f /dev/null\n", 0755).ok());
    EXPECT_TRUE(base::MakeDirectories(data_).ok());
    server_ = {.name = "images", .folder = data_};
    server_.clients = {"127.0.0.1"};
    Define();
  }
  ~FileServerKeeperTest() override {
    EXPECT_TRUE(spec::WriteFileServers(home(), {}).ok());
    Keeper()->Look();
  }

  fs::path home() const { return folder_.path() / "home"; }
  void Define() { EXPECT_TRUE(spec::WriteFileServers(home(), {{server_.name, server_}}).ok()); }
  std::unique_ptr<FileServerKeeper> Keeper() {
    KeeperOptions options{.home = home(), .program = program_.native()};
    options.clock = &clock_;
    return std::make_unique<FileServerKeeper>(std::move(options));
  }
  ServerState State(const std::string& name = "images") const {
    return ReadServerState(ServerFolder(home(), name)).value_or(ServerState());
  }
  // Looks until the state is this.
  ServerState LookUntil(FileServerKeeper& keeper, const std::string& state) {
    const auto deadline = base::Deadline::After(base::Patient(absl::Seconds(20)));
    do {
      keeper.Look();
    } while (State().state != state && !deadline.Expired());
    EXPECT_EQ(State().state, state);
    return State();
  }
  // Has the program say that it serves, once it was started.
  ServerState LookUntilItServes(FileServerKeeper& keeper) {
    LookUntil(keeper, "starting");
    SaysThatItServes();
    return LookUntil(keeper, "running");
  }
  void SaysThatItServes() const {
    EXPECT_TRUE(base::WriteFileAtomic(ServerFolder(home(), "images") / "ganesha.log",
                                      "main :EVENT :  NFS SERVER INITIALIZED\n")
                    .ok());
  }
  static bool IsAlive(pid_t pid) { return pid > 0 && ::kill(pid, 0) == 0; }

  const base::TemporaryDirectory folder_;
  const fs::path program_ = folder_.path() / "ganesha", data_ = folder_.path() / "data";
  base::ManualClock clock_;
  spec::FileServer server_;
};

TEST_F(FileServerKeeperTest, StartsItAndTellsWhenItServes) {
  const auto keeper = Keeper();
  keeper->Look();
  const ServerState starting = State();
  EXPECT_EQ(starting.state, "starting");
  EXPECT_TRUE(IsAlive(starting.pid));
  const auto config = base::ReadFile(ServerFolder(home(), "images") / "ganesha.conf");
  ASSERT_TRUE(config.ok());
  EXPECT_THAT(*config, HasSubstr(data_.native()));
  SaysThatItServes();
  keeper->Look();
  EXPECT_EQ(State().state, "running");
  EXPECT_EQ(State().pid, starting.pid);
}

TEST_F(FileServerKeeperTest, WhatCouldNotBeNotedIsNotedAtTheNextLook) {
  const auto keeper = Keeper();
  LookUntil(*keeper, "starting");
  const fs::path state = ServerFolder(home(), "images") / "state.json";
  fs::remove(state);
  fs::create_directories(state / "in the way");
  SaysThatItServes();
  keeper->Look();
  EXPECT_EQ(State().state, "");
  fs::remove_all(state);
  keeper->Look();
  EXPECT_EQ(State().state, "running");
}

// A client that is refused again and again has a line of each.
TEST_F(FileServerKeeperTest, TheLogOfOneThatServesHasABound) {
  const auto keeper = Keeper();
  const ServerState running = LookUntilItServes(*keeper);
  const fs::path log = ServerFolder(home(), "images") / "ganesha.log";
  const std::string former = log.native() + ".1";
  keeper->Look();
  EXPECT_NE(fs::file_size(log), 0U);
  fs::resize_file(log, kLongestLog);
  keeper->Look();
  EXPECT_EQ(fs::file_size(log), 0U);
  EXPECT_EQ(fs::file_size(former), kLongestLog);
  EXPECT_EQ(State().state, "running");
  EXPECT_EQ(State().pid, running.pid);
  ASSERT_TRUE(base::ReplaceFile(log, std::string(kLongestLog + 1, 'x')).ok());
  keeper->Look();
  EXPECT_EQ(fs::file_size(former), kLongestLog + 1) << "there are two at most";
  EXPECT_EQ(fs::file_size(log), 0U);
}

TEST_F(FileServerKeeperTest, StartsItAgainAfterAPauseWhenItHasDied) {
  const auto keeper = Keeper();
  const pid_t first = LookUntilItServes(*keeper).pid;
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  const ServerState failed = LookUntil(*keeper, "failed");
  EXPECT_THAT(failed.error, HasSubstr("has ended with signal 9 (SIGKILL)"));
  EXPECT_EQ(failed.pid, 0);
  EXPECT_EQ(failed.restarts, 1);
  keeper->Look();
  EXPECT_EQ(State().state, "failed");
  clock_.Advance(absl::Seconds(1));
  const ServerState again = LookUntilItServes(*keeper);
  EXPECT_NE(again.pid, first);
  EXPECT_EQ(again.error, "");
}

TEST_F(FileServerKeeperTest, ItGoesOnWithoutAKeeperAndTheNextTakesItOver) {
  const pid_t pid = LookUntilItServes(*Keeper()).pid;
  ASSERT_TRUE(IsAlive(pid));
  const auto next = Keeper();
  next->Look();
  EXPECT_EQ(State().pid, pid);
  EXPECT_EQ(State().state, "running");
  EXPECT_EQ(State().restarts, 0);
}

TEST_F(FileServerKeeperTest, ANewDefinitionIsServedAtOnce) {
  const auto keeper = Keeper();
  keeper->Look();
  const pid_t first = State().pid;
  server_.is_writable = true;
  Define();
  keeper->Look();
  EXPECT_FALSE(IsAlive(first));
  EXPECT_TRUE(IsAlive(State().pid));
  EXPECT_EQ(State().restarts, 0);
}

TEST_F(FileServerKeeperTest, WhatIsDeletedEndsAndItsFilesStay) {
  ASSERT_TRUE(base::WriteFileAtomic(data_ / "a", "1").ok());
  const auto keeper = Keeper();
  keeper->Look();
  const pid_t pid = State().pid;
  ASSERT_TRUE(IsAlive(pid));
  ASSERT_TRUE(spec::WriteFileServers(home(), {}).ok());
  keeper->Look();
  EXPECT_FALSE(IsAlive(pid));
  EXPECT_FALSE(fs::exists(ServerFolder(home(), "images")));
  EXPECT_TRUE(fs::exists(data_ / "a"));
}

// A service was killed while a server was deleted.
TEST_F(FileServerKeeperTest, TheNextKeeperEndsWhatIsNotInTheList) {
  Keeper()->Look();
  const ServerState left = State();
  ASSERT_TRUE(ServerProcess::Find(left.pid, left.start_time).has_value());
  ASSERT_TRUE(spec::WriteFileServers(home(), {}).ok());
  Keeper()->Look();
  EXPECT_FALSE(fs::exists(ServerFolder(home(), "images")));
  EXPECT_FALSE(ServerProcess::Find(left.pid, left.start_time).has_value());
}

TEST_F(FileServerKeeperTest, AFolderThatIsNotThereIsToldAndServedOnceItIs) {
  ASSERT_TRUE(base::RemoveTree(data_).ok());
  const auto keeper = Keeper();
  keeper->Look();
  EXPECT_EQ(State().state, "failed");
  EXPECT_THAT(State().error, AllOf(HasSubstr(data_.native()), HasSubstr("is no folder")));
  ASSERT_TRUE(base::MakeDirectories(data_).ok());
  clock_.Advance(absl::Minutes(1));
  keeper->Look();
  EXPECT_EQ(State().state, "starting");
}

// The next service would not find it, and its port would stay in use.
TEST_F(FileServerKeeperTest, AFolderThatHasBecomeALinkIsNotServed) {
  const fs::path other = folder_.path() / "other";
  ASSERT_TRUE(base::MakeDirectories(other).ok());
  ASSERT_TRUE(base::RemoveTree(data_).ok());
  fs::create_directory_symlink(other, data_);
  const auto keeper = Keeper();
  keeper->Look();
  EXPECT_EQ(State().state, "failed");
  EXPECT_THAT(State().error, AllOf(HasSubstr("leads to"), HasSubstr(other.native())));
  EXPECT_EQ(State().pid, 0);
}

TEST_F(FileServerKeeperTest, AProcessThatCannotBeNotedIsEnded) {
  const fs::path state = ServerFolder(home(), "images") / "state.json";
  ASSERT_TRUE(base::MakeDirectories(state).ok());  // where no file can be put
  const auto has_child = [] {
    pid_t child = 0;
    while ((child = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    return child == 0;
  };
  ASSERT_FALSE(has_child());
  const auto keeper = Keeper();
  keeper->Look();
  EXPECT_TRUE(fs::exists(ServerFolder(home(), "images") / "ganesha.conf"));
  EXPECT_FALSE(has_child());
  ASSERT_TRUE(base::RemoveTree(state).ok());
  clock_.Advance(absl::Minutes(1));
  keeper->Look();
  EXPECT_EQ(State().state, "starting");
  EXPECT_THAT(State().error, HasSubstr("cannot be written"));
  EXPECT_TRUE(IsAlive(State().pid));
}

TEST_F(FileServerKeeperTest, WhatIsEndedWithoutAKeeperIsStartedByTheNext) {
  const ServerState left = LookUntilItServes(*Keeper());
  const absl::Status ended = EndServer(ServerFolder(home(), "images"));
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_FALSE(ServerProcess::Find(left.pid, left.start_time).has_value());
  EXPECT_EQ(State().state, "");
  EXPECT_TRUE(EndServer(ServerFolder(home(), "images")).ok()) << "there is nothing to end";
  Keeper()->Look();
  EXPECT_EQ(State().state, "starting");
  EXPECT_EQ(State().restarts, 0);
}

// The start hangs before its process: where its log is to be written there is a pipe that nobody
// reads.
TEST_F(FileServerKeeperTest, TheStateOfTheFormerDefinitionIsNotTakenForTheNewOnes) {
  const auto keeper = Keeper();
  LookUntilItServes(*keeper);
  const fs::path folder = ServerFolder(home(), "images"), log = folder / "ganesha.log";
  ASSERT_TRUE(base::RemoveTree(folder / "ganesha.log.1").ok());
  ASSERT_TRUE(base::MakeDirectories(folder / "ganesha.log.1" / "in-the-way").ok());
  fs::remove(log);
  ASSERT_EQ(::mkfifo(log.c_str(), 0600), 0);
  const std::string former = base::ReadFile(folder / "ganesha.conf").value_or("");
  server_.is_writable = true;
  Define();
  std::thread looks([&] { keeper->Look(); });
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    return base::ReadFile(folder / "ganesha.conf").value_or(former) != former;
  }));
  EXPECT_EQ(State().state, "starting");
  EXPECT_EQ(State().pid, 0);
  const base::UniqueFd reader(::open(log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  looks.join();
  EXPECT_EQ(State().state, "starting");
  EXPECT_TRUE(IsAlive(State().pid));
}

// Its log, which each look reads, is a pipe that nobody writes to.
TEST_F(FileServerKeeperTest, AServerWhoseLookHangsHoldsUpNoOther) {
  spec::FileServer hanging = server_;
  hanging.name = "hanging";
  const auto define = [&](const spec::FileServers& servers) {
    ASSERT_TRUE(spec::WriteFileServers(home(), servers).ok());
  };
  const auto soon = [](const std::function<bool()>& holds) {
    return base::AwaitPatiently(absl::Seconds(20), holds);
  };
  define({{"images", server_}, {"hanging", hanging}});
  const auto keeper = Keeper();
  keeper->Run();
  // It is noted as "starting" before it has a process, with which its log begins anew.
  const auto is_started = [&](const std::string& name) {
    return State(name).state == "starting" && State(name).pid > 0;
  };
  ASSERT_TRUE(soon([&] { return is_started("hanging") && is_started("images"); }));
  const fs::path log = ServerFolder(home(), "hanging") / "ganesha.log";
  ASSERT_EQ(::mkfifo((folder_.path() / "pipe").c_str(), 0600), 0);
  fs::rename(folder_.path() / "pipe", log);
  base::UniqueFd writer;  // which can be opened once a look reads
  ASSERT_TRUE(soon([&] {
    writer = base::UniqueFd(::open(log.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    return writer.valid();
  }));
  SaysThatItServes();
  EXPECT_TRUE(soon([&] { return State().state == "running"; }));
  const pid_t first = State().pid;
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  EXPECT_TRUE(soon([&] { return State().state == "failed"; }));
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(soon([&] { return is_started("images"); }));
  define({{"hanging", hanging}});
  EXPECT_TRUE(soon([&] { return !fs::exists(ServerFolder(home(), "images")); }));
  define({});
  fs::remove(log);
  EXPECT_TRUE(IsAlive(State("hanging").pid));
  writer.reset();
  EXPECT_TRUE(soon([&] { return !fs::exists(ServerFolder(home(), "hanging")); }));
}

TEST_F(FileServerKeeperTest, AListThatCannotBeReadLeavesServersAlone) {
  const auto keeper = Keeper();
  keeper->Look();
  const pid_t pid = State().pid;
  ASSERT_TRUE(base::WriteFileAtomic(spec::FileServersFile(home()), "{").ok());
  keeper->Look();
  EXPECT_TRUE(IsAlive(pid));
}

}  // namespace
}  // namespace tutti::file_server
