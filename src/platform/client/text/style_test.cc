#include "platform/client/text/style.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include <set>

#include "base/unique_fd.h"

namespace tutti::client {
namespace {

TEST(Style, TextIsTintedWhereColourIsWanted) {
  EXPECT_EQ(Styled("failed", Tint::kRed, true), "\x1b[31mfailed\x1b[0m");
  EXPECT_EQ(Styled("failed", Tint::kRed, false), "failed");
  EXPECT_EQ(Styled("failed", Tint::kNone, true), "failed");
  EXPECT_EQ(Styled("", Tint::kRed, true), "");
}

TEST(Style, SixRanksDifferAndTheSeventhIsAsTheFirst) {
  std::set<Tint> tints;
  for (int rank = 0; rank < 6; ++rank) tints.insert(TintOfRank(rank));
  EXPECT_EQ(tints.size(), 6U);
  EXPECT_EQ(TintOfRank(6), TintOfRank(0));
  EXPECT_EQ(TintOfRank(-1), TintOfRank(0));
}

TEST(Style, AStateHasTheColourOfWhatItAsks) {
  EXPECT_EQ(TintOfState("Completed"), Tint::kGreen);
  EXPECT_EQ(TintOfState("Failed"), Tint::kRed);
  EXPECT_EQ(TintOfState("Canceled"), Tint::kYellow);
  EXPECT_EQ(TintOfState("of a later version"), Tint::kNone);
}

class ScreenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(controller_.valid());
    ASSERT_EQ(::grantpt(controller_.get()), 0);
    ASSERT_EQ(::unlockpt(controller_.get()), 0);
    terminal_ = base::UniqueFd(::open(::ptsname(controller_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    ASSERT_TRUE(terminal_.valid());
    ::setenv("TERM", "xterm", 1);
    ::unsetenv("NO_COLOR");
  }

  void MakeWide(unsigned short columns) {
    winsize size{};
    size.ws_col = columns;
    ASSERT_EQ(::ioctl(terminal_.get(), TIOCSWINSZ, &size), 0);
  }

  base::UniqueFd controller_{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
  base::UniqueFd terminal_;
};

TEST_F(ScreenTest, ATerminalHasItsWidthAndColour) {
  MakeWide(132);
  const Screen screen = Screen::Of(terminal_.get());
  EXPECT_TRUE(screen.is_terminal);
  EXPECT_TRUE(screen.colour);
  EXPECT_EQ(screen.width, 132);
}

TEST_F(ScreenTest, OneThatDoesNotSayItsWidthHasThatOfColumns) {
  MakeWide(0);
  ::setenv("COLUMNS", "97", 1);
  EXPECT_EQ(Screen::Of(terminal_.get()).width, 97);
  ::setenv("COLUMNS", "wide", 1);
  EXPECT_EQ(Screen::Of(terminal_.get()).width, 80);
  ::unsetenv("COLUMNS");
}

TEST_F(ScreenTest, ThereIsNoColourWhereNoneIsWanted) {
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(Screen::Of(terminal_.get()).colour);
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(Screen::Of(terminal_.get()).colour);
}

TEST_F(ScreenTest, AFileIsNoScreenAndHasNoWidth) {
  const base::UniqueFd file(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  const Screen screen = Screen::Of(file.get());
  EXPECT_FALSE(screen.is_terminal);
  EXPECT_FALSE(screen.colour);
  EXPECT_EQ(screen.width, 0);
}

}  // namespace
}  // namespace tutti::client
