#include "platform/storage/objects/path_pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti::storage {
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

TEST(FolderOfPattern, IsWhatComesBeforeTheFirstWildcard) {
  EXPECT_EQ(FolderOfPattern("train/images/*/*.png"), "train/images");
  EXPECT_EQ(FolderOfPattern("train/im*"), "train");
  EXPECT_EQ(FolderOfPattern("*.csv"), "");
  EXPECT_EQ(FolderOfPattern("a/b?/c"), "a");
}

}  // namespace
}  // namespace tutti::storage
