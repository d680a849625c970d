#include "base/text/path_pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti::base {
namespace {

TEST(MatchesPattern, KeepsAStarWithinOneComponent) {
  EXPECT_TRUE(MatchesPattern("a/*.csv", "a/b.csv"));
  EXPECT_TRUE(MatchesPattern("a/*.csv", "a/.csv"));
  EXPECT_FALSE(MatchesPattern("a/*.csv", "a/b/c.csv"));
  EXPECT_FALSE(MatchesPattern("a/*.csv", "a/b.csv.gz"));
  EXPECT_TRUE(MatchesPattern("*/x*y*z", "a/x-y-yz"));
  EXPECT_FALSE(MatchesPattern("*/x*y*z", "a/xzy"));
}

TEST(MatchesPattern, TakesOneByteForAQuestionMark) {
  EXPECT_TRUE(MatchesPattern("a?c", "abc"));
  EXPECT_FALSE(MatchesPattern("a?c", "ac"));
  EXPECT_FALSE(MatchesPattern("a?c", "a/c"));
}

TEST(MatchesPattern, TakesAnyNumberOfComponentsForTwoStars) {
  EXPECT_TRUE(MatchesPattern("a/**/*.csv", "a/b.csv"));
  EXPECT_TRUE(MatchesPattern("a/**/*.csv", "a/x/y/b.csv"));
  EXPECT_FALSE(MatchesPattern("a/**/*.csv", "b/x/b.csv"));
  EXPECT_TRUE(MatchesPattern("**", "a/b"));
  EXPECT_TRUE(MatchesPattern("a/**", "a/b/c"));
  EXPECT_FALSE(MatchesPattern("a/**", "b"));
}

TEST(MatchesPattern, DoesNotTakeForeverForManyStars) {
  EXPECT_FALSE(MatchesPattern("a*a*a*a*a*a*a*a*a*b", std::string(5000, 'a')));
}

TEST(MatchesPattern, TakesClassesWhereTheyAreAskedFor) {
  const auto fits = [](absl::string_view pattern, absl::string_view path) {
    return MatchesPattern(pattern, path, Wildcards::kClasses);
  };
  EXPECT_TRUE(fits("part-[0-4]*.csv", "part-3b.csv"));
  EXPECT_FALSE(fits("part-[0-4]*.csv", "part-5.csv"));
  EXPECT_TRUE(fits("*[abc].txt", "xxc.txt"));
  EXPECT_FALSE(fits("*[abc].txt", "xxd.txt"));
  EXPECT_TRUE(fits("[!a-c]", "d"));
  EXPECT_FALSE(fits("[!a-c]", "b"));
  EXPECT_TRUE(fits("[]x]", "]"));
  EXPECT_TRUE(fits("[a-]", "-"));
  EXPECT_TRUE(fits("a[b", "a[b"));
  EXPECT_TRUE(fits("[]", "[]"));
  EXPECT_FALSE(fits("a[/]b", "a/b"));
  EXPECT_TRUE(MatchesPattern("a[1]*", "a[1]b"));
  EXPECT_FALSE(MatchesPattern("a[1]*", "a1b"));
}

TEST(FolderOfPattern, IsWhatComesBeforeTheFirstWildcard) {
  EXPECT_EQ(FolderOfPattern("train/images/*/*.png"), "train/images");
  EXPECT_EQ(FolderOfPattern("train/im*"), "train");
  EXPECT_EQ(FolderOfPattern("*.csv"), "");
  EXPECT_EQ(FolderOfPattern("a/b?/c"), "a");
  EXPECT_EQ(FolderOfPattern("a/b[1]/*"), "a/b[1]");
  EXPECT_EQ(FolderOfPattern("a/b[1]/*", Wildcards::kClasses), "a");
}

}  // namespace
}  // namespace tutti::base
