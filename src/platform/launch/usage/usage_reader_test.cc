#include "platform/launch/usage/usage_reader.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/test_patience.h"

namespace tutti::launch {
namespace {

class Child {
 public:
  explicit Child(const std::function<void()>& work) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    work();
    while (true) ::pause();
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

[[noreturn]] void Compute() {
  while (true) {
    [[maybe_unused]] volatile int turns = 0;
  }
}

// Reads samples until the condition holds.
template <class Condition>
bool ReadUntil(UsageReader& reader, const std::vector<RankLeader>& leaders,
               const Condition& condition) {
  const base::Deadline deadline = base::Deadline::After(absl::Seconds(60));
  while (!deadline.Expired()) {
    const base::Deadline next = base::Deadline::After(absl::Milliseconds(50));
    if (condition(reader.Read(leaders, base::SteadyNow(), absl::Now()))) return true;
    while (!next.Expired()) std::this_thread::yield();
  }
  return false;
}

TEST(UsageReaderTest, TellsWhichRankComputes) {
  const Child busy(Compute), idle([] {});
  UsageReader reader(/*memory_share=*/0, base::SteadyNow());
  EXPECT_TRUE(ReadUntil(reader, {{4, busy.pid()}, {5, idle.pid()}}, [](const auto& sample) {
    return sample.ranks.size() == 2 && sample.ranks[0].rank == 4 && sample.ranks[0].cpu > 0.1 &&
           sample.ranks[1].cpu < sample.ranks[0].cpu && sample.cpu >= sample.ranks[0].cpu &&
           sample.machine_cpu > 0;
  }));
}

TEST(UsageReaderTest, CountsWhatChildrenOfARankUse) {
  const Child rank([] {
    if (::fork() != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Compute();
  });
  UsageReader reader(0, base::SteadyNow());
  EXPECT_TRUE(ReadUntil(reader, {{0, rank.pid()}},
                        [](const auto& sample) { return sample.ranks.at(0).cpu > 0.1; }));
}

TEST(UsageReaderTest, SeesMemoryAndWhatIsLeftOfTheShare) {
  constexpr size_t kBytes = 64 << 20;
  const Child rank([] { std::memset(::malloc(kBytes), 1, kBytes); });
  UsageReader reader(/*memory_share=*/3 * kBytes, base::SteadyNow());
  EXPECT_TRUE(ReadUntil(reader, {{0, rank.pid()}}, [](const auto& sample) {
    return sample.ranks.at(0).memory >= kBytes && sample.memory_left <= 2.0 * kBytes;
  }));
}

TEST(UsageReaderTest, SeesThatARankIsStopped) {
  const Child rank([] {});
  UsageReader reader(0, base::SteadyNow());
  EXPECT_FALSE(reader.Read({{0, rank.pid()}}, base::SteadyNow(), absl::Now()).ranks.at(0).stopped);
  ::kill(rank.pid(), SIGSTOP);
  EXPECT_TRUE(ReadUntil(reader, {{0, rank.pid()}},
                        [](const auto& sample) { return sample.ranks.at(0).stopped; }));
}

TEST(UsageReaderTest, SeesThatTheBusiestProcessOfARankIsStopped) {
  int worker[2];
  ASSERT_EQ(::pipe(worker), 0);
  const Child rank([&] {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      Compute();
    }
    if (::write(worker[1], &pid, sizeof pid) != sizeof pid) ::_exit(1);
  });
  pid_t pid = 0;
  ASSERT_EQ(::read(worker[0], &pid, sizeof pid), sizeof pid);
  UsageReader reader(0, base::SteadyNow());
  EXPECT_TRUE(ReadUntil(reader, {{0, rank.pid()}},
                        [](const auto& sample) { return sample.ranks.at(0).cpu > 0.1; }));
  ::kill(pid, SIGSTOP);
  EXPECT_TRUE(ReadUntil(reader, {{0, rank.pid()}},
                        [](const auto& sample) { return sample.ranks.at(0).stopped; }));
  ::close(worker[0]);
  ::close(worker[1]);
}

// The worker ends, and is waited for samples later: what it used comes to its parent then.
TEST(UsageReaderTest, CountsWhatAChildUsedOnce) {
  constexpr double kUsed = 0.5;
  int tells[2], waits[2];
  ASSERT_EQ(::pipe(tells) | ::pipe(waits), 0);
  const Child rank([&] {
    char byte = 0;
    const pid_t worker = ::fork();
    if (worker == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (absl::ToDoubleSeconds(ProcessorTime()) < kUsed) {
      }
      ::_exit(0);
    }
    siginfo_t info;
    ::waitid(P_PID, worker, &info, WEXITED | WNOWAIT);
    if (::write(tells[1], &byte, 1) != 1 || ::read(waits[0], &byte, 1) != 1) ::_exit(1);
    ::waitpid(worker, nullptr, 0);
    if (::write(tells[1], &byte, 1) != 1) ::_exit(1);
  });
  // Seconds of its own clock, so that what is used is the rate.
  absl::Duration now = base::SteadyNow();
  UsageReader reader(0, now);
  double used = 0;
  const auto read = [&] {
    now += absl::Seconds(1);
    used += reader.Read({{0, rank.pid()}}, now, absl::Now()).ranks.at(0).cpu;
  };
  const base::Deadline deadline = base::Deadline::After(absl::Seconds(60));
  while (used < kUsed / 2 && !deadline.Expired()) read();
  char byte = 0;
  ASSERT_EQ(::read(tells[0], &byte, 1), 1);  // it is a zombie now
  for (int i = 0; i < 3; ++i) read();
  EXPECT_NEAR(used, kUsed, 0.2);
  ASSERT_EQ(::write(waits[1], &byte, 1), 1);
  ASSERT_EQ(::read(tells[0], &byte, 1), 1);
  for (int i = 0; i < 3; ++i) read();
  EXPECT_NEAR(used, kUsed, 0.2);
  for (const int fd : {tells[0], tells[1], waits[0], waits[1]}) ::close(fd);
}

TEST(UsageReaderTest, BelievesNoRankOfAProcessThatNoRankHasStarted) {
  const Child rank([] {});
  const Child stranger([] {
    const char* const arguments[] = {"sleep", "1000", nullptr};
    const char* const environment[] = {"TUTTI_METRICS_FILE=/x/rank--2.metrics", nullptr};
    ::execve("/bin/sleep", const_cast<char**>(arguments), const_cast<char**>(environment));
  });
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(30), [&] {
    return !EnvironmentVariableOf(stranger.pid(), "TUTTI_METRICS_FILE").empty();
  }));
  UsageReader reader(0, base::SteadyNow());
  const auto sample = reader.Read({{0, rank.pid()}}, base::SteadyNow(), absl::Now());
  ASSERT_EQ(sample.ranks.size(), 1);
  EXPECT_EQ(sample.ranks[0].rank, 0);
}

TEST(UsageReaderTest, ARankThatHasEndedUsesNothing) {
  const Child rank([] {});
  UsageReader reader(0, base::SteadyNow());
  reader.Read({{0, rank.pid()}}, base::SteadyNow(), absl::Now());
  const auto sample = reader.Read({}, base::SteadyNow(), absl::Now());
  EXPECT_TRUE(sample.ranks.empty());
}

}  // namespace
}  // namespace tutti::launch
