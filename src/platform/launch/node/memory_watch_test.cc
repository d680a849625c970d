#include "platform/launch/node/memory_watch.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "base/test_patience.h"

namespace tutti::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kMiB = 1 << 20;

// Memory that processes share, as torch's tensors and memfds are.
char* Shared(size_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

class MemoryWatchTest : public ::testing::Test {
 protected:
  ~MemoryWatchTest() override {
    for (const RankLeader& leader : leaders_) {
      ::kill(leader.pid, SIGKILL);
      ::waitpid(leader.pid, nullptr, 0);
    }
  }
  // Begins a rank that does `work`, and then waits; returns once it has done it.
  void Begin(const std::function<void()>& work) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      work();
      [[maybe_unused]] const ssize_t told = ::write(ready[1], "x", 1);
      while (true) ::pause();
    }
    leaders_.push_back({static_cast<int>(leaders_.size()), pid});
    ::close(ready[1]);
    char told;
    ASSERT_EQ(::read(ready[0], &told, 1), 1);
    ::close(ready[0]);
  }
  std::optional<MemoryBreach> Look(size_t share) {
    return MemoryWatch(static_cast<int64_t>(share)).Look(leaders_);
  }

  std::vector<RankLeader> leaders_;
};

TEST_F(MemoryWatchTest, MemoryThatAProcessSharesCounts) {
  Begin([] { std::memset(Shared(96 * kMiB), 1, 96 * kMiB); });
  Begin([] {});
  const auto breach = Look(64 * kMiB);
  ASSERT_TRUE(breach.has_value());
  EXPECT_EQ(breach->rank, 0);
  EXPECT_THAT(breach->processes, ElementsAre(leaders_[0].pid));
  EXPECT_THAT(breach->reason, HasSubstr("out of memory: rank 0 used "));
  EXPECT_FALSE(Look(256 * kMiB).has_value());
}

TEST_F(MemoryWatchTest, WhatRanksShareCountsOnce) {
  char* const memory = Shared(96 * kMiB);
  ASSERT_NE(memory, nullptr);
  for (int rank = 0; rank < 4; ++rank) {
    Begin([memory] { std::memset(memory, 1, 96 * kMiB); });
  }
  EXPECT_FALSE(Look(160 * kMiB).has_value()) << "and not 384 MiB";
  EXPECT_TRUE(Look(80 * kMiB).has_value());
  ::munmap(memory, 96 * kMiB);
}

TEST_F(MemoryWatchTest, MemoryOfAProcesssOwnCounts) {
  Begin([] {
    static char* const memory = static_cast<char*>(std::malloc(96 * kMiB));
    std::memset(memory, 1, 96 * kMiB);
  });
  EXPECT_TRUE(Look(64 * kMiB).has_value());
  EXPECT_FALSE(MemoryWatch(0).Look(leaders_).has_value()) << "there is no limit";
}

}  // namespace
}  // namespace tutti::launch
