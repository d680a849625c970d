// kill -9 of the service at every write to its store: the job goes on after a restart, everything
// happens once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <random>

#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

using store::JobState;

constexpr int kDied = 77;

// In a process of its own: a service on `folder`, which dies at store call number `die_at` (0:
// never). `body` plays on until the job is over. Returns the exit code.
template <typename Body>
int InAProcess(const std::filesystem::path& folder, const Script& script, int64_t die_at,
               const Body& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    World world(folder, script);
    if (die_at > 0) {
      world.Open([die_at](int64_t call) {
        if (call == die_at) ::_exit(kDied);
      });
    }
    body(world);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Submits unless an earlier process was told that the job is accepted, then plays to the end.
void RunJob(World& world, const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder / "accepted")) {
    ASSERT_TRUE(world.service().GetJob("j").ok()) << "an accepted job was lost";
  } else {
    const auto submitted = world.Submit();
    ASSERT_TRUE(submitted.ok() || absl::IsAlreadyExists(submitted.status())) << submitted.status();
    DiskEngine::Put(folder / "accepted", "");
  }
  ASSERT_TRUE(world.StepUntilOver("j")) << world.Reason("j");
}

void ExpectOneRunOf(const std::filesystem::path& folder, const Script& script,
                    const std::string& history, const std::string& reason, size_t lines) {
  World world(folder, script);
  EXPECT_EQ(world.History("j"), history);
  EXPECT_EQ(world.Reason("j"), reason);
  EXPECT_EQ(world.engine().Starts().size(), 2u);
  std::vector<std::string> told = world.Told("j");
  std::erase_if(told, [](const std::string& item) { return item[0] == '='; });
  EXPECT_EQ(told.size(), lines);
  std::sort(told.begin(), told.end());
  EXPECT_EQ(std::unique(told.begin(), told.end()), told.end());
}

class Crash : public ::testing::Test {
 protected:
  // Hundreds of lives, each with dozens of syncs: in memory, since it is processes that die here,
  // not the power.
  static void SetUpTestSuite() {
    if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 1);
  }
  static void TearDownTestSuite() { ::unsetenv("TMPDIR"); }

  // Dies at every call of one whole life, each time in a fresh folder. `second`: and once more,
  // that many calls into the life after it.
  void DieEverywhere(const Script& script, const std::string& history, const std::string& reason,
                     size_t lines, int64_t second = 0) {
    int64_t die_at = 1;
    for (;; ++die_at) {
      base::TemporaryDirectory folder;
      const auto body = [&](World& world) { RunJob(world, folder.path()); };
      const int code = InAProcess(folder.path(), script, die_at, body);
      ASSERT_TRUE(code == kDied || code == 0) << "at call " << die_at << ": exit code " << code;
      if (second > 0) InAProcess(folder.path(), script, second, body);
      ASSERT_EQ(InAProcess(folder.path(), script, 0, body), 0) << "after dying at " << die_at;
      ExpectOneRunOf(folder.path(), script, history, reason, lines);
      ASSERT_FALSE(HasFailure()) << "after dying at call " << die_at;
      if (code == 0) break;  // the life was shorter than that
    }
    EXPECT_GT(die_at, 25);
  }
};

TEST_F(Crash, AtEveryWriteOfAJobThatCompletes) {
  DieEverywhere({}, "Queued Provisioning Preparing Starting Running Finalizing Completed",
                "all 2 processes ended with exit code 0", 6);
}

TEST_F(Crash, TwiceInAJobThatCompletes) {
  DieEverywhere({}, "Queued Provisioning Preparing Starting Running Finalizing Completed",
                "all 2 processes ended with exit code 0", 6, 5);
}

TEST_F(Crash, AtEveryWriteOfAJobThatFails) {
  DieEverywhere({{0, nullptr}, {1, {{"signal", 9}}}},
                "Queued Provisioning Preparing Starting Running Finalizing Failed",
                "rank 1 on n2 was killed by signal 9 (SIGKILL)", 6);
}

}  // namespace
}  // namespace tutti::service
