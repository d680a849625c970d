// kill -9 of the service at every write to its store: the job goes on after a restart, everything
// happens once.
// Covers: allocation/job_progress.cc, allocation/effects.cc.
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
    int64_t calls = 0;  // of the store's hooks: before and after each commit, before each sync
    World world(folder, script);
    if (die_at > 0) {
      const auto live_on = [&calls, die_at] {
        if (++calls == die_at) ::_exit(kDied);
        return absl::OkStatus();
      };
      world.Open(
          {.on_commit = [live_on](int64_t) { live_on().IgnoreError(); }, .on_sync = live_on});
    }
    body(world);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Submits unless an earlier process was told that the job is accepted, then plays to the end.
// `idle`: the service has seen that its nodes are idle before, so that the job is placed at once.
void RunJob(World& world, const std::filesystem::path& folder, bool idle) {
  if (idle) world.Step();
  if (std::filesystem::exists(folder / "accepted")) {
    ASSERT_TRUE(world.service().GetJob("j").ok()) << "an accepted job was lost";
  } else {
    const auto submitted = world.Submit();
    ASSERT_TRUE(submitted.ok() || absl::IsAlreadyExists(submitted.status())) << submitted.status();
    DiskEngine::Put(folder / "accepted", "");
  }
  ASSERT_TRUE(world.StepUntilOver("j")) << world.Reason("j");
}

// The same of a job that may be begun again, whose second launcher dies when it first runs.
void RunJobThatLosesANode(World& world, const std::filesystem::path& folder) {
  const std::filesystem::path lost = folder / "lost";
  if (!std::filesystem::exists(folder / "accepted")) {
    const auto submitted =
        world.Submit(absl::StrCat(kJobFile, "retry_settings: {max_retries: 1}\n"));
    ASSERT_TRUE(submitted.ok() || absl::IsAlreadyExists(submitted.status())) << submitted.status();
    DiskEngine::Put(folder / "accepted", "");
  }
  ASSERT_TRUE(world.StepUntil([&] {
    const bool runs = world.State("j") == store::JobState::kRunning;
    if (!std::filesystem::exists(lost)) {
      if (!runs) return false;
      DiskEngine::Put(lost, "");
      world.launchers().Kill("j.1", 1);
    }
    world.launchers().script().erase(1);
    if (std::filesystem::exists(world.engine().root() / "j.1-2")) {
      world.launchers().script().clear();
    }
    return IsEnd(world.State("j")) && world.engine().Allocations().empty();
  })) << world.Reason("j");
}

void ExpectOneRunOf(const std::filesystem::path& folder, const Script& script,
                    const std::string& history, const std::string& reason, size_t lines) {
  World world(folder, script);
  EXPECT_EQ(world.History("j"), history);
  EXPECT_EQ(world.Reason("j"), reason);
  EXPECT_EQ(world.engine().Starts().size(), 2u);
  std::vector<std::string> told = world.FollowerOutput("j");
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
                     size_t lines, int64_t second = 0, bool idle = false) {
    int64_t die_at = 1;
    for (;; ++die_at) {
      base::TemporaryDirectory folder;
      const auto body = [&](World& world) { RunJob(world, folder.path(), idle); };
      const int code = InAProcess(folder.path(), script, die_at, body);
      ASSERT_TRUE(code == kDied || code == 0) << "at call " << die_at << ": exit code " << code;
      if (second > 0) InAProcess(folder.path(), script, second, body);
      ASSERT_EQ(InAProcess(folder.path(), script, 0, body), 0) << "after dying at " << die_at;
      ExpectOneRunOf(folder.path(), script, history, reason, lines);
      ASSERT_FALSE(HasFailure()) << "after dying at call " << die_at;
      if (code == 0) break;  // the life was shorter than that
    }
    EXPECT_GT(die_at, 20);
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

TEST_F(Crash, AtEveryWriteOfAJobThatIsPlacedAtOnce) {
  DieEverywhere({}, "Queued Provisioning Preparing Starting Running Finalizing Completed",
                "all 2 processes ended with exit code 0", 6, 0, true);
}

TEST_F(Crash, AtEveryWriteOfAJobThatFails) {
  DieEverywhere({{0, nullptr}, {1, {{"signal", 9}}}},
                "Queued Provisioning Preparing Starting Running Finalizing Failed",
                "rank 1 on n2 was killed by signal 9 (SIGKILL)", 6);
}

TEST_F(Crash, ASubmissionWhoseAnswerWasLostBecomesOneJob) {
  const Submission submission = {.text = "command: echo hi\nenvironment: host\n",
                                 .base_directory = "/",
                                 .nonce = "of this submission"};
  for (const bool idle : {false, true}) {
    int died = 0;
    for (int64_t die_at = 1;; ++die_at) {
      base::TemporaryDirectory folder;
      const auto submit = [&](World& world) {
        if (idle) world.Step();
        const auto job = world.service().Submit(submission);
        ASSERT_TRUE(job.ok()) << job.status();
        const auto again = world.service().Submit(submission);
        ASSERT_TRUE(again.ok()) << again.status();
        EXPECT_EQ(again->record.job.id, job->record.job.id);
        EXPECT_EQ(world.service().ListJobs({})->size(), 1u);
      };
      const int code = InAProcess(folder.path(), {}, die_at, submit);
      ASSERT_EQ(InAProcess(folder.path(), {}, 0, submit), 0) << "after dying at " << die_at;
      if (code == 0) break;
      ASSERT_EQ(code, kDied) << "at call " << die_at;
      ++died;
    }
    EXPECT_GE(died, 2);  // before the commit, and between it and the answer
  }
}

TEST_F(Crash, AtEveryWriteOfAJobThatIsBegunAgain) {
  const Script script = {{0, nullptr}, {1, nullptr}};
  for (int64_t die_at = 1;; ++die_at) {
    base::TemporaryDirectory folder;
    const auto body = [&](World& world) { RunJobThatLosesANode(world, folder.path()); };
    const int code = InAProcess(folder.path(), script, die_at, body);
    ASSERT_TRUE(code == kDied || code == 0) << "at call " << die_at << ": exit code " << code;
    ASSERT_EQ(InAProcess(folder.path(), script, 0, body), 0) << "after dying at " << die_at;
    World world(folder.path(), script);
    ASSERT_EQ(world.State("j"), store::JobState::kCompleted) << "after dying at " << die_at;
    ASSERT_EQ(world.engine().Starts().size(), 4u) << "after dying at " << die_at;
    if (code == 0) break;
  }
}

TEST_F(Crash, AModelThatBothRanksReportIsRegisteredOnce) {
  for (int64_t die_at = 1;; ++die_at) {
    base::TemporaryDirectory folder;
    const auto body = [&](World& world) {
      world.launchers().metrics =
          "{\"event\": \"model\", \"name\": \"net\", \"path\": \"outputs/from-n1\"}\n";
      RunJob(world, folder.path(), false);
    };
    const int code = InAProcess(folder.path(), {}, die_at, body);
    ASSERT_TRUE(code == kDied || code == 0) << "at call " << die_at << ": exit code " << code;
    ASSERT_EQ(InAProcess(folder.path(), {}, 0, body), 0) << "after dying at " << die_at;
    World world(folder.path());
    ASSERT_EQ(world.Reason("j"), "all 2 processes ended with exit code 0") << die_at;
    const auto page = world.service().models().ListVersions("net", 0, 10);
    ASSERT_TRUE(page.ok()) << "after dying at " << die_at << ": " << page.status();
    ASSERT_EQ(page->versions.size(), 1u) << "after dying at " << die_at;
    if (code == 0) break;
  }
}

TEST_F(Crash, RetentionTakesResultsAwayWithANoteOrNotYet) {
  int64_t die_at = 3;  // the first two are of the start
  for (int code = kDied; code == kDied; ++die_at) {
    base::TemporaryDirectory folder;
    const std::filesystem::path outputs = folder.path() / "jobs/j/outputs";
    ASSERT_EQ(InAProcess(folder.path(), {}, 0,
                         [&](World& world) { RunJob(world, folder.path(), false); }),
              0);
    DiskEngine::Put(folder.path() / "site.yml", "retention: {results: {size: 0MB}}\n");
    code = InAProcess(folder.path(), {}, die_at,
                      [](World& world) { world.service().Prune({}).status().IgnoreError(); });
    ASSERT_TRUE(code == kDied || code == 0) << code;
    World world(folder.path());
    EXPECT_FALSE(std::filesystem::exists(outputs)) << "renamed before the first write";
    ASSERT_TRUE(world.service().Prune({}).ok());
    EXPECT_EQ(world.service().RemovedOf("j")->size(), 1u) << die_at;
    EXPECT_TRUE(world.service().files().Retired().empty());
    EXPECT_FALSE(std::filesystem::exists(outputs));
    EXPECT_TRUE(world.service().Delete("j").ok());
  }
  EXPECT_GT(die_at, 6) << "it died before and after the commit, and before the sync";
}

}  // namespace
}  // namespace tutti::service
