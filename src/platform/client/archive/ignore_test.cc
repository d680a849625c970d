#include "platform/client/archive/ignore.h"

#include <gtest/gtest.h>

namespace tutti::client {
namespace {

TEST(MatchesPath, KnowsStarsWithinAndOverFolders) {
  EXPECT_TRUE(MatchesPath("*.log", "a.log"));
  EXPECT_FALSE(MatchesPath("*.log", "d/a.log"));
  EXPECT_TRUE(MatchesPath("a?c", "abc"));
  EXPECT_FALSE(MatchesPath("a?c", "a/c"));
  EXPECT_TRUE(MatchesPath("[a-c]x", "bx"));
  EXPECT_FALSE(MatchesPath("[!a-c]x", "bx"));
  EXPECT_TRUE(MatchesPath("**/x", "x"));
  EXPECT_TRUE(MatchesPath("**/x", "a/b/x"));
  EXPECT_FALSE(MatchesPath("**/x", "a/bx"));
  EXPECT_TRUE(MatchesPath("a/**/b", "a/b"));
  EXPECT_TRUE(MatchesPath("a/**/b", "a/x/y/b"));
  EXPECT_TRUE(MatchesPath("a/**", "a/x/y"));
  EXPECT_TRUE(MatchesPath("\\*", "*"));
  EXPECT_FALSE(MatchesPath("", "a"));
}

TEST(MatchesPath, IsQuickOnPatternsMadeToBeSlow) {
  std::string pattern;
  for (int i = 0; i < 60; ++i) pattern += "*a";
  EXPECT_FALSE(MatchesPath(pattern + "b", std::string(3000, 'a')));
}

TEST(IgnoreRules, NamesWithoutASlashMatchAtAnyDepth) {
  const IgnoreRules rules("*.pyc\n# comment\n\n__pycache__/\n");
  EXPECT_TRUE(rules.Ignores("a.pyc", false));
  EXPECT_TRUE(rules.Ignores("d/e/a.pyc", false));
  EXPECT_TRUE(rules.Ignores("d/__pycache__", true));
  EXPECT_FALSE(rules.Ignores("d/__pycache__", false));
  EXPECT_FALSE(rules.Ignores("a.py", false));
}

TEST(IgnoreRules, PathsCountFromTheFolder) {
  const IgnoreRules rules("/top\ndata/raw\r\n");
  EXPECT_TRUE(rules.Ignores("top", false));
  EXPECT_FALSE(rules.Ignores("d/top", false));
  EXPECT_TRUE(rules.Ignores("data/raw", true));
  EXPECT_FALSE(rules.Ignores("x/data/raw", true));
}

TEST(IgnoreRules, AByteOrderMarkIsNoPartOfTheFirstLine) {
  const IgnoreRules rules("\xEF\xBB\xBF*.log\n");
  EXPECT_TRUE(rules.Ignores("a.log", false));
}

TEST(MatchesPath, ARangeIsOneOfBytesWhicheverSignTheyHave) {
  EXPECT_TRUE(MatchesPath("[a-\xFF]", "\xC3")) << "plain char is negative on x86";
  EXPECT_TRUE(MatchesPath("[\x80-\xFF]x", "\xC3x"));
  EXPECT_FALSE(MatchesPath("[\x80-\xFF]", "a"));
}

TEST(IgnoreRules, TheLastMatchDecides) {
  const IgnoreRules rules("*.log\n!keep.log\n");
  EXPECT_TRUE(rules.Ignores("a.log", false));
  EXPECT_FALSE(rules.Ignores("keep.log", false));
}

TEST(IgnoreRules, ThoseOfDockerCountFromTheFolderAndTakeBackInWhatLiesInIgnoredFolders) {
  const IgnoreRules rules("*\n!src/\n!/topo.xml\n **/*.log\n", IgnoreRules::Kind::kDocker);
  EXPECT_TRUE(rules.TakesBackIn());
  EXPECT_TRUE(rules.Ignores("data", true));
  EXPECT_TRUE(rules.Ignores("data/a/b", false));
  EXPECT_FALSE(rules.Ignores("src/a/b.py", false));
  EXPECT_FALSE(rules.Ignores("topo.xml", false));
  EXPECT_TRUE(rules.Ignores("src/a/b.log", false));
  const IgnoreRules plain("*.pyc\n./build\n", IgnoreRules::Kind::kDocker);
  EXPECT_FALSE(plain.TakesBackIn());
  EXPECT_TRUE(plain.Ignores("a.pyc", false));
  EXPECT_FALSE(plain.Ignores("d/a.pyc", false));
  EXPECT_TRUE(plain.Ignores("build", false));
}

}  // namespace
}  // namespace tutti::client
