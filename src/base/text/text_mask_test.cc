#include "base/text/text_mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace tutti::base {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

// In pieces of `size` bytes.
std::string InPieces(const TextMask& mask, absl::string_view bytes, size_t size) {
  std::string out;
  MaskedStream stream(&mask);
  for (size_t i = 0; i < bytes.size(); i += size) stream.Push(bytes.substr(i, size), out);
  stream.Finish(out);
  return out;
}

// The plain way, for comparison: every byte that an occurrence of a text has.
std::string Compared(const std::vector<std::string>& texts, const std::string& bytes) {
  std::vector<bool> hidden(bytes.size() + 1);
  for (const std::string& text : texts) {
    for (size_t at = bytes.find(text); at != std::string::npos; at = bytes.find(text, at + 1)) {
      std::fill_n(hidden.begin() + static_cast<int64_t>(at), text.size(), true);
    }
  }
  std::string out;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!hidden[i]) out += bytes[i];
    if (hidden[i] && (i == 0 || !hidden[i - 1])) out += "***";
  }
  return out;
}

TEST(MaskTest, HidesEachOccurrence) {
  const TextMask mask({"hunter22", "swordfish"});
  EXPECT_EQ(mask.Hide("a hunter22, a swordfish and hunter2"), "a ***, a *** and hunter2");
  EXPECT_EQ(mask.Hide("hunter22swordfish"), "***");
  EXPECT_EQ(mask.Hide(""), "");
  EXPECT_EQ(TextMask(std::vector<std::string>()).Hide("hunter22"), "hunter22");
}

TEST(MaskTest, HidesTheWholeOfOccurrencesThatOverlap) {
  EXPECT_EQ(TextMask({"abcd", "cdef", "xabcdefy"}).Hide("-abcdef-xabcdefy-xabcdef-"),
            "-***-***-x***-");
  EXPECT_EQ(TextMask({"aaaa"}).Hide("aaa aaaa aaaaaaa"), "aaa *** ***");
}

TEST(MaskTest, DoesNotMindWhereTheBytesAreCut) {
  const TextMask mask({"hunter22", "swordfish"});
  for (size_t size = 1; size < 20; ++size) {
    EXPECT_EQ(InPieces(mask, "a hunter22, hunthunter22 swordfis", size),
              "a ***, hunt*** ***")  // nearly all of it at the end
        << size;
  }
}

TEST(MaskTest, HoldsBackOnlyWhatMayBecomeAnOccurrence) {
  const TextMask mask({"hunter22"});
  MaskedStream stream(&mask);
  std::string out;
  stream.Push("loss 0.5\nhunt", out);
  EXPECT_EQ(out, "loss 0.5\n");
  stream.Push("ing\n", out);
  EXPECT_EQ(out, "loss 0.5\nhunting\n");
  stream.Push("hunter2", out);
  stream.Push("2", out);
  EXPECT_EQ(out, "loss 0.5\nhunting\n***");
  stream.Push("\n", out);
  EXPECT_EQ(out, "loss 0.5\nhunting\n***\n");
}

TEST(MaskTest, HidesTheBeginningOfATextAtTheEnd) {
  const TextMask mask({"0123456789abcdef"});
  EXPECT_EQ(mask.Hide("of 01234567"), "of ***");
  EXPECT_EQ(mask.Hide("of 0123456"), "of 0123456");
}

TEST(MaskTest, HidesAddressesThatKeepTheirSlashesAndBase64InLines) {
  const std::string value = "a/token with/slashes";
  EXPECT_THAT(TextsToHide(value), Contains("a/token%20with/slashes"));
  EXPECT_THAT(TextsToHide(value), Contains("a%2Ftoken%20with%2Fslashes"));
  std::string longer;
  for (int i = 0; i < 100; ++i) absl::StrAppend(&longer, i, ":");
  const TextMask mask(TextsToHide(longer));
  for (const size_t digits : {64, 76}) {
    std::string lines;
    const std::string all = absl::Base64Escape(longer + "\n");
    for (size_t at = 0; at < all.size(); at += digits) {
      absl::StrAppend(&lines, all.substr(at, digits), "\n");
    }
    const std::string hidden = mask.Hide(lines);
    EXPECT_LT(hidden.size(), 10u) << hidden;
  }
}

TEST(MaskTest, HidesInPlaceWithoutMovingWhatFollows) {
  const TextMask mask({"abcd", "cdef", "xabcdefy"});
  std::string bytes = "-abcdef-xabcdefy-";
  mask.HideInPlace(bytes);
  EXPECT_EQ(bytes, "-******-********-");
  bytes = "12 xab";
  EXPECT_EQ(TextMask({"xabcdefgh"}).HideInPlace(bytes), 3u) << "there may come more of it";
  EXPECT_EQ(bytes, "12 ***");
  bytes = "12 xabcdefgh";
  EXPECT_EQ(TextMask({"xabcdefgh"}).HideInPlace(bytes), 0u);
  EXPECT_EQ(bytes, "12 *********");
  bytes = "12 xabcdefgh";
  EXPECT_EQ(TextMask({"xabcdefgh", "gh-more"}).HideInPlace(bytes), 2u);
  EXPECT_EQ(bytes, "12 *********");
  bytes = "one\ntwo";
  EXPECT_EQ(TextMask::OfEverything().HideInPlace(bytes), 0u);
  EXPECT_EQ(bytes, "***\n***");
  EXPECT_EQ(TextMask::OfEverything().Hide("one\ntwo"), "***\n***");
}

TEST(MaskTest, HidesWhatThePlainWayHides) {
  std::minstd_rand chance(20261125);
  const auto some = [&](size_t most) {
    std::string text;
    for (size_t size = chance() % most; size > 0; --size)
      text += static_cast<char>('a' + chance() % 2);
    return text;
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> texts;
    for (size_t count = 1 + chance() % 4; count > 0; --count) texts.push_back(some(7) + "b");
    const std::string bytes = some(60) + "\n";  // no text has a newline: nothing is half there
    const TextMask mask(texts);
    const std::string expected = Compared(texts, bytes);
    EXPECT_EQ(mask.Hide(bytes), expected) << bytes;
    EXPECT_EQ(InPieces(mask, bytes, 1 + chance() % 9), expected) << bytes;
    std::string same = bytes;
    mask.HideInPlace(same);
    EXPECT_EQ(same.size(), bytes.size());
  }
}

TEST(MaskTest, TakesALongTextThatIsNearlyThereAllTheTimeInLinearTime) {
  const std::string text = std::string(64 << 10, 'a') + "b";
  const std::string bytes(4 << 20, 'a');  // by comparison at each byte: 2^38 steps
  EXPECT_EQ(InPieces(TextMask({text}), bytes, 4096).substr(0, 1000), std::string(1000, 'a'));
}

TEST(TextsToHideTest, HasTheFormsOfAValue) {
  const auto texts = TextsToHide("p\"ss w\\rd+é");
  EXPECT_THAT(texts, Contains("p\"ss w\\rd+é"));
  EXPECT_THAT(texts, Contains("p\\\"ss w\\\\rd+é"));
  EXPECT_THAT(texts, Contains("p%22ss%20w%5Crd%2B%C3%A9"));
  EXPECT_EQ(TextsToHide("sun\tmoon")[1], "sun\\tmoon");
  EXPECT_EQ(TextsToHide(absl::string_view("sun\0moon", 8))[1], "sun\\u0000moon");
}

TEST(TextsToHideTest, FindsAValueInBase64WhereverItBegins) {
  const std::string value = "correct horse battery?>";
  const TextMask mask(TextsToHide(value));
  for (const char* before : {"", "x", "me", "me:", "user"}) {
    for (const char* after : {"", "\n", "yz", "!!!"}) {
      const std::string whole = absl::StrCat(before, value, after);
      for (const std::string& text :
           {absl::Base64Escape(whole), absl::WebSafeBase64Escape(whole)}) {
        // The digits that tell of other bytes too are left.
        const std::string shown = mask.Hide(text);
        EXPECT_NE(shown.find("***"), std::string::npos) << text;
        EXPECT_LE(shown.size(), 3 + 8 + 8u) << shown;
      }
    }
  }
}

TEST(TextsToHideTest, TakesLinesWithoutTheirShortOnes) {
  const auto texts = TextsToHide("-----BEGIN KEY-----\r\nMIIEvQIBADANBg\n  shrt \n}\n");
  EXPECT_THAT(texts, Contains("-----BEGIN KEY-----"));
  EXPECT_THAT(texts, Contains("MIIEvQIBADANBg"));
  EXPECT_THAT(texts, Not(Contains("shrt")));
  EXPECT_THAT(texts, Not(Contains("}")));
  EXPECT_THAT(texts, Not(Contains("")));
}

TEST(TextsToHideTest, HidesNoValueThatIsTooShort) {
  EXPECT_THAT(TextsToHide("abc\n"), IsEmpty());
  EXPECT_THAT(TextsToHide(""), IsEmpty());
  EXPECT_THAT(TextsToHide("abcd\n"), ElementsAre("abcd"));
}

}  // namespace
}  // namespace tutti::base
