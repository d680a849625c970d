// Ranks as processes, of which one is lost while the others wait for tensors.
// Covers: coordination/stall_inspector.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/test_patience.h"
#include "runtime/comm/group/group_test_support.h"
#include "runtime/comm/negotiation/negotiation.h"

namespace tutti::comm {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;

struct NegotiationScenario {
  int size = 3;
  int victim = 1;
  int signal = SIGKILL;
  absl::Duration peer_timeout = base::PatientTimeout(absl::Seconds(4));
  absl::Duration stall_shutdown = absl::ZeroDuration();
  bool in_set = false;  // the others wait in a process set that the victim is in
};

// Lines that a rank has to say: "stall …" and "error LOST TEXT", one for every operation.
class Diary {
 public:
  void Write(const std::string& line) {
    const std::lock_guard<std::mutex> lock(mutex_);
    lines_.push_back(line);
  }
  std::string All() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return absl::StrJoin(lines_, "\n");
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

Submission SumOver(const std::string& name, std::vector<float>& data) {
  Submission submission;
  submission.request.kind = Kind::kAllReduce;
  submission.request.name = name;
  submission.request.parts = {{DataType::kFloat32, {static_cast<int64_t>(data.size())}}};
  submission.inputs = {data.data()};
  submission.outputs = {data.data()};
  return submission;
}

void WaitForAll(Negotiation& negotiation, int set, Diary& diary) {
  std::vector<std::vector<float>> data(20, std::vector<float>(1000, 1));
  std::vector<std::shared_ptr<Operation>> operations;
  for (size_t i = 0; i < data.size(); ++i) {
    Submission submission = SumOver(absl::StrCat("gradient.", i), data[i]);
    submission.request.set = set;
    const OperationOr operation = negotiation.Submit(std::move(submission));
    if (operation.ok()) {
      operations.push_back(*operation);
    } else {
      diary.Write(absl::StrCat("error ", LostRank(operation.status()).value_or(-1), " ",
                               operation.status().message()));
    }
  }
  for (const auto& operation : operations) {
    const absl::Status status =
        operation->Wait(base::Deadline::After(base::Patient(absl::Seconds(30))));
    diary.Write(absl::StrCat("error ", LostRank(status).value_or(-1), " ", status.message()));
  }
}

// The life of one rank; never returns.
[[noreturn]] void Live(const GroupOptions& options, const NegotiationScenario& scenario,
                       int report) {
  ::alarm(static_cast<unsigned>(60 * base::TestPatience()));
  Diary diary;
  auto group = JoinGroup(options);
  if (!group.ok()) ::_exit(3);
  NegotiationOptions negotiating;
  negotiating.log_stalls = false;
  negotiating.stall.warning = absl::Milliseconds(300);
  negotiating.stall.shutdown = scenario.stall_shutdown;
  negotiating.on_stall = [&](const Stall& stall) {
    diary.Write(absl::StrCat("stall ", stall.silent, " ", stall.ToString()));
  };
  {
    const auto negotiation = Negotiation::Start(*std::move(group), negotiating);
    int set = kWorldSet;
    if (scenario.in_set) {
      const auto added = negotiation->AddProcessSet({1, 2});
      if (!added.ok() || !(*added)->Wait(Soon()).ok()) ::_exit(4);
      set = static_cast<int>((*added)->value());
    }
    std::vector<float> data(10, 1);
    const auto first = negotiation->Submit(SumOver("first", data));
    if (!first.ok() || !(*first)->Wait(Soon()).ok()) ::_exit(5);
    if (options.rank == scenario.victim) ::raise(scenario.signal);
    if (options.rank > 0 || !scenario.in_set) WaitForAll(*negotiation, set, diary);
    if (options.rank == 0 && scenario.in_set) WaitForAll(*negotiation, kWorldSet, diary);
  }
  const std::string text = diary.All();
  if (::write(report, text.data(), text.size()) < 0) ::_exit(2);
  ::_exit(0);
}

// What every survivor has to say, by rank.
std::map<int, std::vector<std::string>> Survive(const NegotiationScenario& scenario) {
  auto options = OptionsFor(scenario.size, GroupOptions::Transport::kAuto);
  std::vector<pid_t> pids;
  std::map<int, base::UniqueFd> pipes;
  for (GroupOptions& one : options) {
    one.peer_timeout = scenario.peer_timeout;
    int ends[2];
    if (::pipe(ends) != 0) return {};
    pids.push_back(::fork());
    if (pids.back() == 0) Live(one, scenario, ends[1]);
    ::close(ends[1]);
    pipes.emplace(one.rank, ends[0]);
  }
  std::map<int, std::vector<std::string>> reports;
  for (auto& [rank, pipe] : pipes) {
    if (rank == scenario.victim) continue;
    std::string text;
    char block[4096];
    for (ssize_t n; (n = ::read(pipe.get(), block, sizeof(block))) > 0;) text.append(block, n);
    reports[rank] = absl::StrSplit(text, '\n', absl::SkipEmpty());
  }
  for (const pid_t pid : pids) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  return reports;
}

std::vector<std::string> Only(const std::vector<std::string>& lines, const std::string& kind) {
  std::vector<std::string> kept;
  for (const std::string& line : lines) {
    if (line.rfind(kind, 0) == 0) kept.push_back(line);
  }
  return kept;
}

TEST(NegotiationFaultTest, AKilledRankIsNamedByEveryOutstandingOperation) {
  for (const int victim : {0, 1, 2}) {
    for (const auto& [rank, lines] : Survive({.victim = victim})) {
      EXPECT_THAT(
          Only(lines, "error"),
          AllOf(SizeIs(20), Each(HasSubstr(absl::StrCat("error ", victim, " rank ", victim)))))
          << "rank " << rank << ", victim " << victim;
    }
  }
}

TEST(NegotiationFaultTest, AKilledRankIsNamedToItsProcessSetByItsNumberInTheWorld) {
  for (const auto& [rank, lines] : Survive({.victim = 2, .in_set = true})) {
    EXPECT_THAT(Only(lines, "error"), AllOf(SizeIs(20), Each(HasSubstr("error 2 rank 2"))))
        << "rank " << rank;
  }
}

TEST(NegotiationFaultTest, AStoppedRankIsFirstReportedWithWhatWaitsForItAndThenLost) {
  const absl::Duration silence = base::PatientTimeout(absl::Seconds(3));
  for (const int victim : {0, 2}) {
    const auto reports = Survive({.victim = victim, .signal = SIGSTOP, .peer_timeout = silence});
    for (const auto& [rank, lines] : reports) {
      const std::string silent = absl::StrCat("stall ", victim, " tensor \"gradient.");
      EXPECT_THAT(Only(lines, silent), Contains(HasSubstr("nothing has been heard for ")))
          << "rank " << rank << ", victim " << victim << ": " << absl::StrJoin(lines, "\n");
      EXPECT_THAT(
          Only(lines, "error"),
          AllOf(SizeIs(20),
                Each(HasSubstr(absl::StrCat("silent for ", absl::FormatDuration(silence))))));
      EXPECT_EQ(lines.back().rfind("error", 0), 0u) << "the report comes before the loss";
    }
  }
}

TEST(NegotiationFaultTest, AStalledTensorEndsItAfterTheShutdownTime) {
  const auto reports = Survive({.victim = 1,
                                .signal = SIGSTOP,
                                .stall_shutdown = base::PatientTimeout(absl::Milliseconds(800))});
  for (const auto& [rank, lines] : reports) {
    EXPECT_THAT(Only(lines, "stall"), Contains(HasSubstr("for rank 1"))) << "rank " << rank;
    EXPECT_THAT(Only(lines, "error"),
                AllOf(SizeIs(20), Each(HasSubstr("error 1 tensor \"gradient."))));
  }
}

}  // namespace
}  // namespace tutti::comm
