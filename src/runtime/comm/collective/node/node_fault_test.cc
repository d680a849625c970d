// A rank that is killed at any moment of a collective over shared memory: all others get an error
// that names it, in time.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "base/unique_fd.h"
#include "runtime/comm/group_test_support.h"

namespace tutti::comm {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// What a survivor reports.
struct Report {
  int lost = -1;
  double at = 0;
};

// Collectives of every way, for ever: flat, staged, over shared buffers (old and new ones), between
// nodes.
absl::Status WorkForEver(Communicator& group) {
  std::vector<float> plain(400000, 1.0f);
  const auto buffer = *group.AllocateShared(1600000);
  const auto reduce = [&](void* data, size_t count) {
    return group.AllReduce(data, count, DataType::kFloat32, ReduceOp::kMean, Soon());
  };
  while (true) {
    const auto fresh = *group.AllocateShared(400000);
    for (const absl::Status& status :
         {reduce(plain.data(), 2), reduce(plain.data(), 400000), reduce(buffer->data(), 400000),
          reduce(fresh->data(), 100000), group.Broadcast(plain.data(), 1600000, 0, Soon()),
          group.Barrier(Soon())}) {
      if (!status.ok()) return status;
    }
  }
}

class Processes {
 public:
  Processes(int size, int per_node, absl::Duration peer_timeout) {
    for (GroupOptions& options : OptionsFor(size, GroupOptions::Transport::kAuto, per_node)) {
      options.peer_timeout = peer_timeout;
      Start(options);
    }
  }
  ~Processes() {
    for (const pid_t pid : pids_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

  // When the rank says that it has begun, or that it got an error.
  Report Read(int rank) {
    Report report;
    pollfd polled = {reports_[rank].get(), POLLIN, 0};
    if (::poll(&polled, 1, 60000) != 1 ||
        ::read(polled.fd, &report, sizeof(report)) != sizeof(report)) {
      return {-2, 0};
    }
    return report;
  }
  void Kill(int rank) { ::kill(pids_[rank], SIGKILL); }

 private:
  void Start(const GroupOptions& options) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(100);
      Live(options, ends[1]);
    }
    ::close(ends[1]);
    pids_.push_back(pid);
    reports_.emplace_back(ends[0]);
  }
  [[noreturn]] static void Live(const GroupOptions& options, int to) {
    auto group = JoinGroup(options);
    Report report{group.ok() ? -1 : -3, Now()};
    bool written = ::write(to, &report, sizeof(report)) == sizeof(report);
    if (group.ok()) {
      const absl::Status status = WorkForEver(**group);
      report = {LostRank(status).value_or(-4), Now()};
      written = ::write(to, &report, sizeof(report)) == sizeof(report);
    }
    ::_exit(written ? 0 : 1);
  }

  std::vector<pid_t> pids_;
  std::vector<base::UniqueFd> reports_;
};

void ExpectThatAllNameTheVictim(int size, int per_node, int victim, absl::Duration after) {
  constexpr double kPeerTimeout = 3;
  Processes processes(size, per_node, absl::Seconds(kPeerTimeout));
  for (int rank = 0; rank < size; ++rank) ASSERT_EQ(processes.Read(rank).lost, -1);
  // Any moment will do: this one differs from run to run.
  const auto until = base::Deadline::After(after);
  while (!until.Expired()) ::poll(nullptr, 0, until.RemainingMillis());
  const double killed = Now();
  processes.Kill(victim);
  for (int rank = 0; rank < size; ++rank) {
    if (rank == victim) continue;
    const Report report = processes.Read(rank);
    EXPECT_EQ(report.lost, victim) << "rank " << rank << " of " << size;
    EXPECT_LT(report.at - killed, kPeerTimeout) << "rank " << rank << " of " << size;
  }
}

TEST(NodeFaultTest, EverySurvivorOfATeamNamesTheRankThatWasKilled) {
  for (int run = 0; run < 12; ++run) {
    const int size = 2 + run % 3;
    ExpectThatAllNameTheVictim(size, 1 << 16, run % size, absl::Milliseconds(5 + 7 * run));
  }
}

TEST(NodeFaultTest, EverySurvivorOfTwoLevelsNamesTheRankThatWasKilled) {
  for (int run = 0; run < 4; ++run) {
    ExpectThatAllNameTheVictim(4, 2, run, absl::Milliseconds(5 + 17 * run));
  }
}

}  // namespace
}  // namespace tutti::comm
