#include "base/text/utf8.h"

#include <gtest/gtest.h>

namespace tutti::base {
namespace {

TEST(Utf8, ACharactersLengthOrThatItIsNone) {
  EXPECT_EQ(Utf8Length(""), 0);
  EXPECT_EQ(Utf8Length("a…"), 1);
  EXPECT_EQ(Utf8Length("é"), 2);
  EXPECT_EQ(Utf8Length("…"), 3);
  EXPECT_EQ(Utf8Length("\xF4\x8F\xBF\xBF"), 4);  // the last one
  for (const char* none : {"\x80", "\xC3", "\xC3(", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80",
                           "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    EXPECT_EQ(Utf8Length(none), 0) << none;
  }
}

TEST(Utf8, ABoundCutsNoCharacterAndReplacesWhatIsNone) {
  EXPECT_EQ(BoundedUtf8(""), "");
  EXPECT_EQ(BoundedUtf8("caf\xE9 é"), "caf? é");
  EXPECT_EQ(BoundedUtf8("éé…", 3), "éé…");
  EXPECT_EQ(BoundedUtf8("éééé", 3), "éé…");
  EXPECT_EQ(BoundedUtf8("\xE2\x80", 2), "??");
  EXPECT_EQ(BoundedUtf8("ab", 1), "…");
}

TEST(Utf8, ACutCharacterIsLeftOutAtTheEndAlone) {
  EXPECT_EQ(WholeCharacters(""), "");
  EXPECT_EQ(WholeCharacters("aé"), "aé");
  EXPECT_EQ(WholeCharacters("a\xC3"), "a");
  EXPECT_EQ(WholeCharacters("a\xE2\x80"), "a");
  EXPECT_EQ(WholeCharacters("\xC3z"), "\xC3z");
}

}  // namespace
}  // namespace tutti::base
