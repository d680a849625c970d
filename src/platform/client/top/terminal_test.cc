#include "platform/client/top/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/test_patience.h"

namespace tutti::client {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// TerminalTest has a terminal at whose other end the test sits.
class TerminalTest : public ::testing::Test {
 protected:
  TerminalTest() {
    int user = -1, program = -1;
    winsize size{.ws_row = 10, .ws_col = 40};
    EXPECT_EQ(::openpty(&user, &program, nullptr, nullptr, &size), 0);
    user_.reset(user);
    program_.reset(program);
  }

  // Returns what has been written so far.
  std::string Shown() {
    std::string shown;
    char bytes[4096];
    pollfd ready{user_.get(), POLLIN, 0};
    while (::poll(&ready, 1, 0) == 1) {
      const ssize_t n = ::read(user_.get(), bytes, sizeof bytes);
      if (n <= 0) break;
      shown.append(bytes, n);
    }
    return shown;
  }
  void Type(const std::string& bytes) {
    EXPECT_EQ(::write(user_.get(), bytes.data(), bytes.size()), std::ssize(bytes));
  }
  tcflag_t LocalModes() {
    termios modes{};
    EXPECT_EQ(::tcgetattr(program_.get(), &modes), 0);
    return modes.c_lflag;
  }
  // Waits until `holds` does; a signal may come on another thread, and later.
  template <class Condition>
  void WaitFor(Terminal& terminal, const Condition& holds) {
    base::AwaitPatiently(absl::Seconds(20), [&] {
      terminal.Wait(absl::Milliseconds(10));
      return holds();
    });
  }

  base::UniqueFd user_, program_;
};

TEST_F(TerminalTest, IsTakenAndGivenBackAsItWas) {
  const tcflag_t before = LocalModes();
  ASSERT_TRUE(before & ECHO);
  {
    Terminal terminal(program_.get(), program_.get());
    ASSERT_TRUE(terminal.Enter().ok());
    EXPECT_THAT(Shown(), AllOf(HasSubstr("\x1b[?1049h"), HasSubstr("\x1b[?25l")));
    EXPECT_FALSE(LocalModes() & (ECHO | ICANON));
    EXPECT_TRUE(LocalModes() & ISIG);
    ASSERT_TRUE(terminal.Draw({"one"}).ok());
  }
  EXPECT_EQ(LocalModes(), before);
  EXPECT_THAT(Shown(), AllOf(HasSubstr("one"), HasSubstr("\x1b[?25h"), EndsWith("\x1b[?1049l")));
}

TEST_F(TerminalTest, IsNotTouchedWhereItIsNotTaken) {
  { Terminal terminal(program_.get(), program_.get()); }
  EXPECT_THAT(Shown(), IsEmpty());
}

TEST_F(TerminalTest, DrawsWhatHasChangedAlone) {
  Terminal terminal(program_.get(), program_.get());
  ASSERT_TRUE(terminal.Enter().ok());
  ASSERT_TRUE(terminal.Draw({"one", "two"}).ok());
  EXPECT_THAT(Shown(), HasSubstr("\x1b[1;1H\x1b[2Kone\x1b[2;1H\x1b[2Ktwo\x1b[3;1H\x1b[J"));
  ASSERT_TRUE(terminal.Draw({"one", "two"}).ok());
  EXPECT_THAT(Shown(), IsEmpty());
  ASSERT_TRUE(terminal.Draw({"one", "three"}).ok());
  EXPECT_THAT(Shown(), HasSubstr("three"));
}

TEST_F(TerminalTest, DrawsAnewOnceItHasAnotherSize) {
  Terminal terminal(program_.get(), program_.get());
  ASSERT_TRUE(terminal.Enter().ok());
  EXPECT_EQ(terminal.size().width, 40);
  EXPECT_EQ(terminal.size().height, 10);
  ASSERT_TRUE(terminal.Draw({"one", "two"}).ok());
  Shown();
  winsize size{.ws_row = 1, .ws_col = 50};
  ASSERT_EQ(::ioctl(user_.get(), TIOCSWINSZ, &size), 0);
  ASSERT_TRUE(terminal.Draw({"one", "two"}).ok());
  EXPECT_THAT(Shown(), AllOf(HasSubstr("\x1b[2J"), HasSubstr("one"), Not(HasSubstr("two"))));
}

TEST_F(TerminalTest, HasKeysAsTheyArePressed) {
  Terminal terminal(program_.get(), program_.get());
  ASSERT_TRUE(terminal.Enter().ok());
  EXPECT_EQ(terminal.TakeBytes(), "");
  Type("j\x1b[A");
  std::string bytes;
  WaitFor(terminal, [&] {
    bytes += terminal.TakeBytes();
    return bytes.size() == 4;
  });
  EXPECT_EQ(bytes, "j\x1b[A");
  EXPECT_FALSE(terminal.is_over());
  user_.reset();
  WaitFor(terminal, [&] { return terminal.TakeBytes().empty() && terminal.is_over(); });
}

TEST_F(TerminalTest, TurnsSignalsIntoEventsAndGivesTheirHandlersBack) {
  struct sigaction before {
  }, after{};
  ::sigaction(SIGTERM, nullptr, &before);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    Terminal terminal(program_.get(), program_.get());
    ASSERT_TRUE(terminal.Enter().ok());
    EXPECT_FALSE(terminal.was_ended());
    ::raise(number);
    EXPECT_TRUE(terminal.was_ended()) << number;
  }
  ::sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

TEST_F(TerminalTest, TakesTheTerminalAgainAfterItWasStopped) {
  Terminal terminal(program_.get(), program_.get());
  ASSERT_TRUE(terminal.Enter().ok());
  ASSERT_TRUE(terminal.Draw({"one"}).ok());
  Shown();
  ASSERT_TRUE(terminal.StopIfAsked().ok());
  EXPECT_THAT(Shown(), IsEmpty());
  ::raise(SIGCONT);
  ASSERT_TRUE(terminal.StopIfAsked().ok());
  EXPECT_THAT(Shown(), HasSubstr("\x1b[?1049h"));
  ASSERT_TRUE(terminal.Draw({"one"}).ok());
  EXPECT_THAT(Shown(), HasSubstr("one"));
}

TEST_F(TerminalTest, IsWokenFromAnotherThread) {
  Terminal terminal(program_.get(), program_.get());
  ASSERT_TRUE(terminal.Enter().ok());
  std::thread other([&] { terminal.Wake(); });
  terminal.Wait(absl::Hours(1));
  other.join();
}

TEST_F(TerminalTest, ASignalEndsAWriteThatNobodyReads) {
  Terminal terminal(program_.get(), program_.get());
  ASSERT_TRUE(terminal.Enter().ok());
  const pthread_t writer = ::pthread_self();
  std::atomic<bool> written = false;
  std::thread other([&] {
    // Again and again: the first may come before the write has begun to wait.
    base::AwaitPatiently(absl::Seconds(20), [&] {
      ::pthread_kill(writer, SIGTERM);
      return written.load();
    });
  });
  EXPECT_TRUE(terminal.Draw({std::string(1 << 20, 'x')}).ok());
  written = true;
  other.join();
  EXPECT_TRUE(terminal.was_ended());
}

TEST_F(TerminalTest, SaysThatItIsGone) {
  Terminal terminal(program_.get(), program_.get());
  ASSERT_TRUE(terminal.Enter().ok());
  user_.reset();
  EXPECT_FALSE(terminal.Draw({"one"}).ok());
}

TEST_F(TerminalTest, HasNoKeysWhereTheInputIsNoTerminal) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const base::UniqueFd in(ends[0]), other(ends[1]);
  Terminal terminal(in.get(), program_.get());
  ASSERT_TRUE(terminal.Enter().ok());
  ASSERT_EQ(::write(other.get(), "q", 1), 1);
  terminal.Wait(absl::ZeroDuration());
  EXPECT_EQ(terminal.TakeBytes(), "");
  EXPECT_FALSE(terminal.is_over());
}

}  // namespace
}  // namespace tutti::client
