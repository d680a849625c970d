#include "platform/client/top/live.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "absl/strings/match.h"
#include "base/test_patience.h"
#include "platform/client/connection/connection_fake.h"

namespace tutti::client {
namespace {

// LiveTest has a terminal with a user who types and reads, and a service with the job "a".
class LiveTest : public ::testing::Test {
 protected:
  LiveTest() {
    int user = -1, program = -1;
    winsize size{.ws_row = 20, .ws_col = 80};
    EXPECT_EQ(::openpty(&user, &program, nullptr, nullptr, &size), 0);
    user_.reset(user);
    program_.reset(program);
    EXPECT_EQ(::tcgetattr(program, &before_), 0);
  }

  FakeService::Answer AnswerTo(const std::string& target) {
    if (away_) return {.then = absl::UnavailableError("it is gone"), .reached = false};
    if (target == "/v1/nodes") {
      return {.chunks = {R"({"nodes": [{"name": "n1", "state": "idle"}]})"}};
    }
    if (absl::StrContains(target, "usage")) {
      return {.chunks = {R"({"live": true, "nodes": [{"name": "n1", "age": 1, "recent":
              {"cpu": [1.25], "ranks": [{"rank": 0}]}, "whole": {"cpu": [1], "ranks":
              [{"rank": 0}]}}]})"}};
    }
    const std::string job = R"({"id": "a", "state": "Running", "node_count": 1})";
    if (target == "/v1/jobs/a") return {.chunks = {job}};
    if (absl::StrContains(target, "Running")) return {.chunks = {R"({"jobs": [)" + job + "]}"}};
    return {.chunks = {R"({"jobs": []})"}};
  }

  // Shows it until `user` has done what it does; returns how it ended.
  template <class User>
  absl::StatusOr<ExitCode> ShowWhile(const User& user) {
    Terminal terminal(program_.get(), program_.get());
    std::thread reads([&] { user(); });
    const auto code = ShowLive(fake_.connect(), {}, {.interval = absl::Milliseconds(5)}, terminal);
    reads.join();
    return code;
  }
  // Waits until the terminal was shown `text`, after what was waited for before.
  void Await(const std::string& text) {
    std::string shown;
    base::AwaitPatiently(absl::Seconds(30), [&] {
      char bytes[4096];
      pollfd ready{user_.get(), POLLIN, 0};
      if (::poll(&ready, 1, 20) != 1) return false;
      const ssize_t n = ::read(user_.get(), bytes, sizeof bytes);
      if (n > 0) shown.append(bytes, n);
      return absl::StrContains(shown, text);
    });
  }
  void Type(const std::string& bytes) {
    EXPECT_EQ(::write(user_.get(), bytes.data(), bytes.size()), std::ssize(bytes));
  }
  void ExpectGivenBack() {
    termios after{};
    ASSERT_EQ(::tcgetattr(program_.get(), &after), 0);
    EXPECT_EQ(after.c_lflag, before_.c_lflag);
    EXPECT_EQ(after.c_iflag, before_.c_iflag);
  }

  std::atomic<bool> away_ = false;
  FakeService fake_{
      [this](const http::ClientRequest& request) { return AnswerTo(request.target); }};
  base::UniqueFd user_, program_;
  termios before_{};
};

TEST_F(LiveTest, OpensAJobGoesBackAndQuits) {
  const auto code = ShowWhile([this] {
    Await("> a");
    Type("\r");
    Await("rank 0");
    Type("\x1b");
    Await("Enter ranks");
    Type("s");
    Await("order: cores");
    Type("q");
  });
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, ExitCode::kOk);
  ExpectGivenBack();
}

TEST_F(LiveTest, SaysThatTheServiceIsAwayUntilItIsBack) {
  const auto code = ShowWhile([this] {
    Await("1.25");
    away_ = true;
    Await("asking again: it is gone");
    away_ = false;
    Await("1 job: 1 running");
    Type("q");
  });
  EXPECT_TRUE(code.ok()) << code.status();
}

TEST_F(LiveTest, EndsOnASignalAndGivesTheTerminalBack) {
  const auto code = ShowWhile([this] {
    Await("> a");
    ::kill(::getpid(), SIGTERM);
  });
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, ExitCode::kInterrupted);
  ExpectGivenBack();
}

TEST_F(LiveTest, EndsWithTheTerminal) {
  const auto code = ShowWhile([this] {
    Await("> a");
    user_.reset();
  });
  EXPECT_TRUE(!code.ok() || *code == ExitCode::kOk);  // writing noticed it, or reading
}

}  // namespace
}  // namespace tutti::client
