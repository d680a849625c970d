#include "platform/client/text/columns.h"

#include <gtest/gtest.h>
#include <locale.h>
#include <wchar.h>

#include "absl/strings/str_format.h"

namespace tutti::client {
namespace {

TEST(Columns, CountsWhatATerminalShows) {
  EXPECT_EQ(Columns("abc"), 3);
  EXPECT_EQ(Columns("Größe"), 5);
  EXPECT_EQ(Columns("e\xCC\x81"), 1);  // e and a combining accent
  EXPECT_EQ(Columns("日本"), 4);
  EXPECT_EQ(Columns("\xff\xc3"), 2);  // not UTF-8
  EXPECT_EQ(Columns("▕███▏"), 5);
  EXPECT_EQ(Columns("⌚✅🚀"), 6);
  EXPECT_EQ(Columns("कि"), 2);  // a vowel that is drawn before its consonant
  EXPECT_EQ(Columns("ที่"), 1);   // two marks above one consonant
}

std::string Utf8Of(char32_t code) {
  const auto byte = [](char32_t bits) { return static_cast<char>(bits); };
  if (code < 0x800) return {byte(0xC0 | code >> 6), byte(0x80 | (code & 0x3F))};
  if (code < 0x10000) {
    return {byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 0x3F)), byte(0x80 | (code & 0x3F))};
  }
  return {byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 0x3F)),
          byte(0x80 | (code >> 6 & 0x3F)), byte(0x80 | (code & 0x3F))};
}

// The scripts are those that get no new characters, whatever version of Unicode the library has.
TEST(Columns, AreThoseOfTheCLibrary) {
  const locale_t unicode = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  ASSERT_NE(unicode, nullptr);
  const locale_t before = ::uselocale(unicode);
  for (const auto& [first, last] : {std::pair<char32_t, char32_t>{0x300, 0x85F},
                                    {0x900, 0xEFF},
                                    {0x1000, 0x11FF},
                                    {0x1E00, 0x2BFF},
                                    {0x2E80, 0xA4CF},
                                    {0xAC00, 0xD7A3},
                                    {0xF900, 0xFFDC},
                                    {0x1F300, 0x1F64F},
                                    {0x20000, 0x2A6D0}}) {
    for (char32_t code = first; code <= last; ++code) {
      const int columns = ::wcwidth(static_cast<wchar_t>(code));
      if (columns < 0) continue;  // not assigned, or a control character
      ASSERT_EQ(Columns(Utf8Of(code)), columns) << absl::StrFormat("U+%04X", code);
    }
  }
  ::uselocale(before);
  ::freelocale(unicode);
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
  EXPECT_EQ(Printable("a\u202Eb\u2066c\u2028d\u200Fe"), "a?b?c?d\u200Fe");
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
