#include "platform/client/text/columns.h"

#include <gtest/gtest.h>

namespace tutti::client {
namespace {

TEST(Columns, CountsWhatATerminalShows) {
  EXPECT_EQ(Columns("abc"), 3);
  EXPECT_EQ(Columns("Größe"), 5);
  EXPECT_EQ(Columns("e\xCC\x81"), 1);  // e and a combining accent
  EXPECT_EQ(Columns("日本"), 4);
  EXPECT_EQ(Columns("\xff\xc3"), 2);  // not UTF-8
  EXPECT_EQ(Columns("▕███▏"), 5);
}

TEST(Columns, ShortensWithoutCuttingACharacter) {
  EXPECT_EQ(Shorten("abc", 3), "abc");
  EXPECT_EQ(Shorten("abcd", 3), "ab…");
  EXPECT_EQ(Shorten("日本語", 4), "日…");
  EXPECT_EQ(Shorten("abc", 1), "…");
  EXPECT_EQ(Shorten("abc", 0), "");
}

TEST(Columns, Pads) {
  EXPECT_EQ(PadRight("ö", 3), "ö  ");
  EXPECT_EQ(PadLeft("7", 3), "  7");
  EXPECT_EQ(PadRight("long", 2), "long");
}

TEST(Columns, ForeignTextCannotSteerTheTerminal) {
  EXPECT_EQ(Printable("a\x1b[2Jb\nc\td"), "a?[2Jb?c\td");
  EXPECT_EQ(Printable("é"), "é");
}

TEST(TerminalLine, ShowsTheLastStateOfAnOverwrittenLine) {
  EXPECT_EQ(TerminalLine("10%\r50%\r100%\r"), "100%");
  EXPECT_EQ(TerminalLine("\r"), "");
}

TEST(TerminalLine, KeepsColoursAndNothingElse) {
  EXPECT_EQ(TerminalLine("\x1b[31mred"), "\x1b[31mred\x1b[0m");
  EXPECT_EQ(TerminalLine("\x1b[2Ja\x1b]0;title\ab\x1b(c\x07"), "abc");
  EXPECT_EQ(TerminalLine("\x1b[12"), "");
  EXPECT_EQ(TerminalLine("\x1b"), "");
}

}  // namespace
}  // namespace tutti::client
