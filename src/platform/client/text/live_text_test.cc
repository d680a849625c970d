#include "platform/client/text/live_text.h"

#include <gtest/gtest.h>

#include <sstream>

#include "absl/strings/str_cat.h"

namespace tutti::client {
namespace {

TEST(LiveText, RedrawsTheChangingLineBelowTheLinesThatStay) {
  std::ostringstream out;
  {
    LiveText text(out, {.is_terminal = true, .width = 80});
    text.SetStatus("10 %");
    text.Flush();
    EXPECT_EQ(out.str(), "10 %");
    text.Flush();
    EXPECT_EQ(out.str(), "10 %");
    text.Print("hello");
    text.SetStatus("20 %");
    text.Flush();
    EXPECT_EQ(out.str(), "10 %\r\x1b[Khello\n20 %");
  }
  EXPECT_EQ(out.str(), "10 %\r\x1b[Khello\n20 %\r\x1b[K");
}

TEST(LiveText, RedrawsSeveralChangingLines) {
  std::ostringstream out;
  LiveText text(out, {.is_terminal = true, .width = 80});
  text.SetStatus("a\nb\nc");
  text.Print("hello");
  text.Flush();
  text.SetStatus("d");
  text.Flush();
  EXPECT_EQ(out.str(), "hello\na\nb\nc\x1b[2A\r\x1b[Jd");
}

TEST(LiveText, APipeGetsOnlyTheLinesThatStay) {
  std::ostringstream out;
  {
    LiveText text(out, {});
    text.SetStatus("10 %");
    text.Print("hello");
  }
  EXPECT_EQ(out.str(), "hello\n");
}

TEST(LiveText, APipeIsToldOnceAMinuteHowFarItIs) {
  std::ostringstream out;
  LiveText text(out, {});
  for (int second = 0; second <= 150; second += 10) {
    text.SetProgress(absl::StrCat(second, " s"), absl::UnixEpoch() + absl::Seconds(second));
    text.Flush();
  }
  EXPECT_EQ(out.str(), "60 s\n120 s\n");
}

}  // namespace
}  // namespace tutti::client
