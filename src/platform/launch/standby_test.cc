// Covers: node/claim.cc, node/node_folders.h.
#include "platform/launch/standby.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/machine/machine.h"
#include "base/test_patience.h"
#include "base/unique_fd.h"
#include "platform/launch/node/claim.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A process that runs RunStandby.
class Waiting {
 public:
  explicit Waiting(const fs::path& folder) : folder_(folder) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) ::abort();
    input_.reset(ends[0]);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::setpgid(0, 0);
      ::dup2(ends[1], STDIN_FILENO);
      for (const int fd : ends) ::close(fd);
      ::_exit(RunStandby(folder.string()));
    }
    ::close(ends[1]);
  }
  ~Waiting() {
    ::kill(-pid_, SIGKILL);  // with it its ranks end
    if (!ended_) Exit();
  }

  bool IsReady() const {
    const auto owner = base::ReadFile(NodeFolders(folder_).lock());
    return owner.ok() && absl::StrContains(*owner, absl::StrCat("\"pid\": ", pid_, ","));
  }
  bool Runs() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }
  void SendPlan(const fs::path& plan) {
    const std::string line = absl::StrCat(plan.string(), "\n");
    EXPECT_EQ(::send(input_.get(), line.data(), line.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(line.size()));
  }
  void EndInput() { input_.reset(); }
  pid_t pid() const { return pid_; }
  int Exit() {
    ended_ = true;
    int status = -1;
    ::waitpid(pid_, &status, 0);
    return status;
  }

 private:
  const fs::path folder_;
  base::UniqueFd input_;
  pid_t pid_ = -1;
  bool ended_ = false;
};

class StandbyTest : public ::testing::Test {
 protected:
  // Whose process says where it runs, and stays.
  fs::path WritePlan(const fs::path& folder) const {
    spec::LaunchPlan plan;
    plan.allocation_id = plan.job_id = folder.filename().string();
    plan.directory = folder.string();
    plan.boot_id = base::BootId();
    plan.command = "pwd > ../where; exec sleep 1000";
    plan.nodes.push_back({"n1", "127.0.0.1", 0, 1});
    plan.environment.is_host = true;
    EXPECT_TRUE(base::MakeDirectories(folder).ok());
    EXPECT_TRUE(base::ReplaceFile(folder / "plan.json", spec::ToJson(plan), 0600).ok());
    return folder / "plan.json";
  }
  static bool AwaitProcess(const fs::path& folder) {
    return base::AwaitPatiently(absl::Seconds(30), [&] {
      const auto where = base::ReadFile(folder / "where");
      return where.ok() && *where == absl::StrCat((folder / "work").string(), "\n");
    });
  }

  const base::TemporaryDirectory root_{"tutti-standby"};
  const fs::path ahead_ = root_.path() / ".ahead", job_ = root_.path() / "job.1";
};

TEST_F(StandbyTest, RunsAPlanInTheFolderThatItHasMade) {
  Waiting standby(ahead_);
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(30), [&] { return standby.IsReady(); }));
  EXPECT_EQ(fs::file_size(ahead_ / "plan.json"), 0u);
  EXPECT_FALSE(fs::exists(ahead_ / "started"));
  fs::rename(ahead_, job_);
  standby.SendPlan(WritePlan(job_));
  ASSERT_TRUE(AwaitProcess(job_));
  EXPECT_TRUE(fs::exists(job_ / "started"));
  EXPECT_FALSE(fs::exists(job_ / "marker"));
  EXPECT_FALSE(fs::exists(ahead_));
  EXPECT_FALSE(TakeLock(NodeFolders(job_)).ok()) << "the launcher holds it";
  EXPECT_THAT(*base::ReadFile(job_ / "spool" / "events.jsonl"),
              ::testing::StartsWith("{\"kind\":\"preparing\""));
  EXPECT_THAT(*base::ReadFile(job_ / "hostfile"), HasSubstr("127.0.0.1"));
}

TEST_F(StandbyTest, DoesNotMakeTheNodesFolderWhereThatIsAway) {
  const fs::path node = root_.path() / "away";
  Waiting waiting(node / ".ahead");
  waiting.EndInput();
  EXPECT_EQ(waiting.Exit(), 0);
  EXPECT_FALSE(fs::exists(node));
}

TEST_F(StandbyTest, RunsAPlanInAnotherFolder) {
  Waiting standby(ahead_);
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(30), [&] { return standby.IsReady(); }));
  standby.SendPlan(WritePlan(job_));
  ASSERT_TRUE(AwaitProcess(job_));
  EXPECT_FALSE(TakeLock(NodeFolders(job_)).ok());
  EXPECT_TRUE(TakeLock(NodeFolders(ahead_)).ok()) << "which it holds no more";
}

TEST_F(StandbyTest, OneThatWaitedBeforeDoesNotStandInTheWay) {
  Waiting old(ahead_);
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(30), [&] { return old.IsReady(); }));
  Waiting standby(ahead_);
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(30), [&] { return standby.IsReady(); }));
  ASSERT_TRUE(old.Runs());
  fs::rename(ahead_, job_);
  standby.SendPlan(WritePlan(job_));
  EXPECT_TRUE(AwaitProcess(job_));
}

TEST_F(StandbyTest, EndsWithItsInputOrWhenToldTo) {
  Waiting with_input(ahead_);
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(30), [&] { return with_input.IsReady(); }));
  with_input.EndInput();
  EXPECT_EQ(with_input.Exit(), 0);
  Waiting told(ahead_);
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(30), [&] { return told.IsReady(); }));
  ASSERT_EQ(::kill(told.pid(), SIGTERM), 0);
  EXPECT_EQ(told.Exit(), 0);
}

}  // namespace
}  // namespace tutti::launch
