#include "platform/client/follow/interrupts.h"

#include <gmock/gmock.h>
#include <pty.h>
#include <signal.h>
#include <unistd.h>

#include <string>

#include "base/unique_fd.h"

namespace tutti::client {
namespace {

// Standard input and error are a terminal at whose other end the test writes; or, at first, none.
class InterruptsTest : public ::testing::Test {
 protected:
  InterruptsTest() : input_(::dup(STDIN_FILENO)), error_(::dup(STDERR_FILENO)) {}
  ~InterruptsTest() override {
    ::dup2(input_.get(), STDIN_FILENO);
    ::dup2(error_.get(), STDERR_FILENO);
  }

  void UseTerminal() {
    int user = -1, program = -1;
    ASSERT_EQ(::openpty(&user, &program, nullptr, nullptr, nullptr), 0);
    user_.reset(user);
    program_.reset(program);
    ::dup2(program, STDIN_FILENO);
    ::dup2(program, STDERR_FILENO);
  }
  // Asks the user, who types this.
  Answer AskWith(const std::string& typed) {
    EXPECT_EQ(::write(user_.get(), typed.data(), typed.size()), static_cast<ssize_t>(typed.size()));
    return interrupts_.Ask();
  }

  base::UniqueFd input_, error_, user_, program_;
  SignalInterrupts interrupts_;
};

TEST_F(InterruptsTest, EachIsTakenOnce) {
  EXPECT_FALSE(interrupts_.Take());
  ::raise(SIGINT);
  ::raise(SIGINT);
  EXPECT_TRUE(interrupts_.Take());
  EXPECT_FALSE(interrupts_.Take());
}

TEST_F(InterruptsTest, TheUserChoosesByALetter) {
  UseTerminal();
  EXPECT_EQ(AskWith("y\n"), Answer::kCancel);
  EXPECT_EQ(AskWith("N\n"), Answer::kGoOn);
  EXPECT_EQ(AskWith("detach\n"), Answer::kDetach);
  EXPECT_EQ(AskWith("\n"), Answer::kGoOn) << "Enter keeps the job";
  EXPECT_EQ(AskWith("what?\n"), Answer::kGoOn) << "and so does what is no answer";
}

TEST_F(InterruptsTest, AnotherInterruptIsAnAnswer) {
  UseTerminal();
  ::raise(SIGINT);
  EXPECT_EQ(interrupts_.Ask(), Answer::kLeave);
  EXPECT_FALSE(interrupts_.Take()) << "it has been answered";
}

TEST_F(InterruptsTest, WithoutATerminalNobodyIsAsked) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const base::UniqueFd reader(ends[0]), writer(ends[1]);
  ::dup2(reader.get(), STDIN_FILENO);
  EXPECT_EQ(interrupts_.Ask(), Answer::kLeave);
}

TEST_F(InterruptsTest, WhoIsToEndDoesNotAsk) {
  UseTerminal();
  ::raise(SIGTERM);
  EXPECT_TRUE(interrupts_.Take());
  EXPECT_EQ(AskWith("n\n"), Answer::kLeave);
}

TEST(SignalInterruptsTest, GivesTheHandlersBack) {
  struct sigaction before {
  }, after{};
  ::sigaction(SIGINT, nullptr, &before);
  { const SignalInterrupts interrupts; }
  ::sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

}  // namespace
}  // namespace tutti::client
