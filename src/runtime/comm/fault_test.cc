// Ranks as processes of their own, of which one is lost in every way that there is: every other one
// gets an error that names it, in time, and never hangs.
// Covers: lost_rank.cc, transport/striped_channel.cc.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/test_patience.h"
#include "runtime/comm/group/group_test_support.h"
#include "runtime/comm/transport/ucx_channel.h"

namespace tutti::comm {
namespace {

using Transport = GroupOptions::Transport;

enum class Fate { kKilled, kStopped, kExits, kLeaves, kKilledWithAChild, kComputes };

struct Scenario {
  int size = 2;
  int victim = 1;
  Fate fate = Fate::kKilled;
  Transport transport = Transport::kAuto;
  absl::Duration peer_timeout = base::PatientTimeout(absl::Seconds(4));
  absl::Duration deadline = base::Patient(absl::Seconds(60));
  bool encrypt = false;
  int streams = 1;
};

// What a survivor says of the call that failed.
struct SurvivorReport {
  int rank = 0;
  int lost = -1;
  int code = 0;
  double seconds = 0;
  bool same_again = false;  // the next call returned the same error at once
  std::string message;
};

// How long this process lives at most, whatever it waits for.
void LiveFor(absl::Duration limit) {
  ::alarm(static_cast<unsigned>(absl::ToInt64Seconds(base::Patient(limit))));
}

double Seconds(absl::Time since) { return absl::ToDoubleSeconds(absl::Now() - since); }

void SufferFate(Fate fate, std::unique_ptr<Communicator> group) {
  switch (fate) {
    case Fate::kKilled:
      ::raise(SIGKILL);
      break;
    case Fate::kStopped:
      ::raise(SIGSTOP);
      break;
    case Fate::kExits:
      break;
    case Fate::kLeaves:
      group.reset();
      break;
    case Fate::kKilledWithAChild:
      // As data loaders do: the child holds this rank's sockets open.
      if (::fork() == 0) {
        LiveFor(absl::Seconds(20));
        while (true) ::pause();
      }
      ::raise(SIGKILL);
      break;
    case Fate::kComputes:  // until the others have said what they make of it
      while (true) ::poll(nullptr, 0, 100);
  }
  ::_exit(0);
}

std::string Survive(Communicator& group, absl::Duration deadline) {
  std::vector<float> data(300000, 1.0f);
  const absl::Time start = absl::Now();
  const auto call = [&] {
    return group.AllReduce(data.data(), data.size(), DataType::kFloat32, ReduceOp::kSum,
                           base::Deadline::After(deadline));
  };
  // A rank whose left neighbours are done may finish one call more than the lost one.
  absl::Status status = call();
  for (int i = 0; i < 3 && status.ok(); ++i) status = call();
  const double seconds = Seconds(start);
  const absl::Time again = absl::Now();
  const absl::Status repeated = call();
  const bool same = LostRank(repeated) == LostRank(status) && repeated.code() == status.code() &&
                    Seconds(again) < 0.5 * base::TestPatience();
  return absl::StrCat(LostRank(status).value_or(-1), " ", static_cast<int>(status.code()), " ",
                      seconds, " ", same ? 1 : 0, " ", std::string(status.message()));
}

// The life of one rank; never returns.
[[noreturn]] void Live(const GroupOptions& options, const Scenario& scenario, int report) {
  LiveFor(absl::Seconds(60));
  std::string text;
  auto group = JoinGroup(options);
  if (!group.ok()) {
    text = absl::StrCat("-2 0 0 0 ", std::string(group.status().message()));
  } else {
    std::vector<float> data(50000, 1.0f);
    for (int i = 0; i < 3; ++i) {
      (*group)
          ->AllReduce(data.data(), data.size(), DataType::kFloat32, ReduceOp::kMean, Soon())
          .IgnoreError();
    }
    if (options.rank == scenario.victim) SufferFate(scenario.fate, *std::move(group));
    text = Survive(**group, scenario.deadline);
    group->reset();
  }
  if (::write(report, text.data(), text.size()) < 0) ::_exit(2);
  ::_exit(0);
}

// One group of processes.
class Group {
 public:
  explicit Group(const Scenario& scenario) : scenario_(scenario) {
    auto options = OptionsFor(scenario.size, scenario.transport,
                              scenario.transport == Transport::kTcp ? 1 : 1 << 16);
    for (GroupOptions& one : options) {
      one.encrypt = scenario.encrypt;
      one.tcp_streams = scenario.streams;
      one.peer_timeout = scenario.peer_timeout;
      Start(one);
    }
  }
  ~Group() {
    for (const pid_t pid : pids_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  Group(Group&&) = default;

  std::vector<SurvivorReport> Reports() {
    std::vector<SurvivorReport> reports;
    for (int rank = 0; rank < scenario_.size; ++rank) {
      if (rank != scenario_.victim) reports.push_back(Read(rank));
    }
    return reports;
  }

  void ExpectAllNameTheVictim(double within_seconds, const std::string& text) {
    for (const SurvivorReport& report : Reports()) {
      const std::string where =
          absl::StrCat("rank ", report.rank, " of ", scenario_.size, ", victim ", scenario_.victim,
                       ", transport ", static_cast<int>(scenario_.transport), ", TLS ",
                       scenario_.encrypt, ", streams ", scenario_.streams, ": ", report.message);
      EXPECT_EQ(report.lost, scenario_.victim) << where;
      EXPECT_LT(report.seconds, within_seconds * base::TestPatience()) << where;
      EXPECT_TRUE(report.same_again) << where;
      EXPECT_NE(report.message.find(absl::StrCat("rank ", scenario_.victim)), std::string::npos)
          << where;
      EXPECT_NE(report.message.find(text), std::string::npos) << where;
    }
  }

 private:
  void Start(const GroupOptions& options) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) Live(options, scenario_, ends[1]);
    ::close(ends[1]);
    pids_.push_back(pid);
    pipes_.emplace_back(ends[0]);
  }

  SurvivorReport Read(int rank) {
    std::string text;
    const auto deadline = base::Deadline::After(base::Patient(absl::Seconds(30)));
    pollfd polled = {pipes_[rank].get(), POLLIN, 0};
    char block[1024];
    if (::poll(&polled, 1, deadline.RemainingMillis()) > 0) {
      const ssize_t n = ::read(polled.fd, block, sizeof(block));
      text.assign(block, n > 0 ? static_cast<size_t>(n) : 0);
    }
    SurvivorReport report;
    report.rank = rank;
    std::istringstream fields(text);
    fields >> report.lost >> report.code >> report.seconds >> report.same_again;
    std::getline(fields, report.message);
    return report;
  }

  Scenario scenario_;
  std::vector<pid_t> pids_;
  std::vector<base::UniqueFd> pipes_;
};

// A silence for which a busy machine is not taken, and what is said of it.
absl::Duration ShortSilence() { return base::PatientTimeout(absl::Seconds(2)); }
std::string SilentFor(absl::Duration silence) {
  return absl::StrCat("silent for ", absl::FormatDuration(silence));
}

// Over sizes, victims and transports, `at_once` groups at a time: more of those that wait.
void ForEveryGroup(Scenario scenario, double within_seconds, const std::string& text,
                   size_t at_once = 1) {
  std::vector<Group> groups;
  const auto check = [&] {
    for (Group& group : groups) group.ExpectAllNameTheVictim(within_seconds, text);
    groups.clear();
  };
  for (const Transport transport : {Transport::kTcp, Transport::kSharedMemory}) {
    for (const int size : {2, 3, 4}) {
      for (const int victim : std::set<int>{0, 1, size - 1}) {
        scenario.transport = transport;
        scenario.size = size;
        scenario.victim = victim;
        groups.emplace_back(scenario);
        if (groups.size() == at_once) check();
      }
    }
  }
  check();
}

TEST(LostRankTest, AKilledRankIsNamedByAllOthers) {
  ForEveryGroup({.fate = Fate::kKilled}, 5, "left the group (connection closed)");
}

TEST(LostRankTest, ARankThatExitsWithoutLeavingIsNamed) {
  ForEveryGroup({.fate = Fate::kExits}, 5, "left the group (connection closed)");
}

TEST(LostRankTest, ARankThatLeavesInGoodOrderWhileOthersGoOnIsNamed) {
  ForEveryGroup({.fate = Fate::kLeaves}, 5, "left the group before the others were done");
}

TEST(LostRankTest, AStoppedRankIsNamedWhenItIsSilentForTooLong) {
  ForEveryGroup({.fate = Fate::kStopped, .peer_timeout = ShortSilence()}, 4,
                SilentFor(ShortSilence()), 6);
}

TEST(LostRankTest, WithTheDefaultTimeoutAStoppedRankIsNamedWithinFiveSeconds) {
  std::vector<Group> groups;
  for (const int victim : {0, 1, 2}) {
    groups.emplace_back(Scenario{.size = 3,
                                 .victim = victim,
                                 .fate = Fate::kStopped,
                                 .peer_timeout = GroupOptions().peer_timeout});
  }
  for (Group& group : groups) group.ExpectAllNameTheVictim(5, "silent for 4s");
}

TEST(LostRankTest, AKilledRankIsNamedThoughAChildOfItHoldsItsConnectionsOpen) {
  ForEveryGroup(
      {.fate = Fate::kKilledWithAChild, .peer_timeout = base::PatientTimeout(absl::Seconds(1))}, 3,
      "silent", 6);
}

// Over TLS, several streams, both, and UCX where it is.
void ForEveryOtherRoute(const Scenario& common, double within_seconds, const std::string& text) {
  std::vector<Scenario> routes(3, common);
  for (Scenario& route : routes) route.transport = Transport::kTcp;
  routes[0].encrypt = routes[2].encrypt = true;
  routes[1].streams = routes[2].streams = 3;
  if (CheckUcx().ok()) {
    routes.push_back(common);
    routes.back().transport = Transport::kUcx;
  }
  std::vector<Group> groups;
  const auto check = [&] {
    for (Group& group : groups) group.ExpectAllNameTheVictim(within_seconds, text);
    groups.clear();
  };
  for (Scenario route : routes) {
    route.size = 3;
    for (route.victim = 0; route.victim < 3; ++route.victim) groups.emplace_back(route);
    if (groups.size() == 6) check();
  }
  check();
}

TEST(LostRankTest, AKilledRankIsNamedOverTlsSeveralStreamsAndUcx) {
  ForEveryOtherRoute({.fate = Fate::kKilled}, 5, "left the group (connection closed)");
}

TEST(LostRankTest, AStoppedRankIsNamedOverTlsSeveralStreamsAndUcx) {
  ForEveryOtherRoute({.fate = Fate::kStopped, .peer_timeout = ShortSilence()}, 4,
                     SilentFor(ShortSilence()));
}

TEST(LostRankTest, AStoppedRankIsNamedAtTheCallersDeadlineWhenThatIsSooner) {
  ForEveryGroup({.fate = Fate::kStopped, .deadline = base::PatientTimeout(absl::Milliseconds(400))},
                3, "is late: it does not answer", 6);
}

TEST(LostRankTest, ARankThatComputesIsNamedAtTheCallersDeadline) {
  ForEveryGroup(
      {.fate = Fate::kComputes, .deadline = base::PatientTimeout(absl::Milliseconds(300))}, 4,
      "is late: it has not begun it", 6);
}

TEST(LostRankTest, ALongComputationIsNoError) {
  auto options = OptionsFor(3, Transport::kAuto);
  const absl::Duration one_silence = base::PatientTimeout(absl::Milliseconds(500));
  for (GroupOptions& one : options) one.peer_timeout = one_silence;
  OnEveryRank(options, [&](int rank, absl::StatusOr<std::unique_ptr<Communicator>> group) {
    ASSERT_TRUE(group.ok()) << group.status();
    const absl::Time start = absl::Now();
    while (rank == 1 && Seconds(start) < 4 * absl::ToDoubleSeconds(one_silence)) {
      ::poll(nullptr, 0, 100);
    }
    const absl::Status status = (*group)->Barrier(Soon());
    EXPECT_TRUE(status.ok()) << status;
  });
}

TEST(LostRankTest, ARankMayLeaveWhenAllIsDoneWhileOthersStillCompute) {
  auto options = OptionsFor(4, Transport::kAuto, 2);
  std::atomic<int> left = 0;
  OnEveryRank(options, [&](int rank, absl::StatusOr<std::unique_ptr<Communicator>> group) {
    ASSERT_TRUE(group.ok()) << group.status();
    std::vector<float> data(100000, 1.0f);
    const absl::Status status =
        (*group)->AllReduce(data.data(), data.size(), DataType::kFloat32, ReduceOp::kSum, Soon());
    EXPECT_TRUE(status.ok()) << status;
    const absl::Time start = absl::Now();
    while (rank == 2 && left < 3 && Seconds(start) < 10 * base::TestPatience())
      ::poll(nullptr, 0, 10);
    const absl::Time leaving = absl::Now();
    group->reset();
    EXPECT_LT(Seconds(leaving), base::TestPatience()) << "rank " << rank;
    ++left;
  });
}

TEST(LostRankTest, AnOkStatusAndOthersErrorsNameNobody) {
  EXPECT_FALSE(LostRank(absl::OkStatus()).has_value());
  EXPECT_FALSE(LostRank(absl::UnavailableError("rank 1")).has_value());
}

}  // namespace
}  // namespace tutti::comm
