#include "platform/client/archive/ignore.h"

#include <gtest/gtest.h>

#include "absl/strings/strip.h"

namespace tutti::client {
namespace {

// Decides as git does: what lies in a folder that is left out is left out. A path that ends with
// "/" is a folder.
bool Ignores(absl::string_view text, absl::string_view path) {
  const IgnoreRules rules(text);
  const bool is_directory = absl::ConsumeSuffix(&path, "/");
  for (size_t i = path.find('/'); i != absl::string_view::npos; i = path.find('/', i + 1)) {
    if (rules.Decide(path.substr(0, i), true).value_or(false)) return true;
  }
  return rules.Decide(path, is_directory).value_or(false);
}

// Each answer is that of `git check-ignore --no-index` (git 2.39) in a repository with that
// .gitignore.
TEST(IgnoreRules, LeaveOutWhatGitDoes) {
  struct Fact {
    const char *rules, *path;
    bool ignored;
  };
  constexpr Fact kFacts[] = {
      {"*.log", "a.log", true},
      {"*.log", "d/a.log", true},
      {"/*.log", "a.log", true},
      {"/*.log", "d/a.log", false},
      {"data/raw", "data/raw", true},
      {"data/raw", "x/data/raw", false},
      {"build/", "d/build/", true},
      {"build/", "build", false},
      {"d/x/", "d/x/", true},
      {"d/x/", "d/xy/", false},
      {"a**b", "d/axb", true},
      {"d/a**b", "d/axb", true},
      {"d/a**b", "d/a/b", false},
      {"d/a**b", "d/ax/yb", false},
      {"foo**/bar", "foobar", true},  // git's own: what follows "foo" is matched by "**/bar"
      {"foo**/bar", "foox/y/bar", true},
      {"**/x", "x", true},
      {"**/x", "a/b/x", true},
      {"**/x", "a/bx", false},
      {"***/x", "a/x", true},
      {"a/**/b", "a/b", true},
      {"a/**/b", "a/x/y/b", true},
      {"a/**/b", "a/xb", false},
      {"a/**", "a/x/y", true},
      {"a/**", "a", false},
      {"a/*", "a/x/", true},
      {"a/*/c", "a/b/c", true},
      {"a/*/c", "a/b/x/c", false},
      {"a?b", "axb", true},
      {"a?b", "a/b", false},
      {"[a-c]x", "bx", true},
      {"[!a-c]x", "bx", false},
      {"[^a-c]x", "dx", true},
      {"[]-]x", "]x", true},
      {"[]-]x", "-x", true},
      {"[]-]x", "ax", false},
      {"[a\\-c]x", "bx", false},
      {"[a\\-c]x", "-x", true},
      {"[a\\]]x", "]x", true},
      {"[[:digit:][:upper:]]x", "3x", true},
      {"[[:digit:][:upper:]]x", "bx", false},
      {"[[:nope:]]x", "nx", false},
      {"[[:]x", "[x", true},
      {"[[:]x", "d/:x", true},
      {"[ab", "[ab", false},
      {"a[/]b", "a/b", false},
      {"caf[^a-z]*", "caf\xC3\xA9", true},
      {"\\*", "*", true},
      {"\\*", "a", false},
      {"\\a", "a", true},
      {"\\#x", "#x", true},
      {"#x", "#x", false},
      {"\\!x", "!x", true},
      {"x\\", "x\\", false},
      {"x ", "x", true},
      {"x ", "x ", false},
      {"x\\ ", "x ", true},
      {"x\\ \\  ", "x  ", true},
      {"x\t", "x", false},
      {"x\r", "x", true},
      {"\xEF\xBB\xBFx", "x", true},
      {"/", "x", false},
      {"", "x", false},
      {"!x", "x", false},
      {"*.log\n!keep.log", "a.log", true},
      {"*.log\n!keep.log", "keep.log", false},
      {"*\n!*/\n!*.py", "a.txt", true},
      {"*\n!*/\n!*.py", "d/a.py", false},
      {"d/\n!d/x", "d/x", true},
      {"d/*\n!d/x", "d/x", false},
  };
  for (const Fact& fact : kFacts) {
    EXPECT_EQ(Ignores(fact.rules, fact.path), fact.ignored) << fact.rules << " of " << fact.path;
  }
}

TEST(PathPattern, IsQuickWhereItIsMadeToBeSlow) {
  std::string pattern;
  for (int i = 0; i < 60; ++i) pattern += "*a";
  EXPECT_FALSE(PathPattern(pattern + "b").Matches(std::string(3000, 'a')));
}

TEST(PathPattern, ARangeIsOneOfBytesWhicheverSignTheyHave) {
  EXPECT_TRUE(PathPattern("[a-\xFF]").Matches("\xC3")) << "plain char is negative on x86";
  EXPECT_TRUE(PathPattern("[\x80-\xFF]x").Matches("\xC3x"));
  EXPECT_FALSE(PathPattern("[\x80-\xFF]").Matches("a"));
}

TEST(IgnoreRules, ThoseOfDockerCountFromTheFolderAndTakeBackInWhatLiesInIgnoredFolders) {
  const IgnoreRules rules("*\n!src/\n!/topo.xml\n **/*.log\n", IgnoreRules::Kind::kDocker);
  EXPECT_TRUE(rules.MayReinclude());
  EXPECT_TRUE(rules.Decide("data", true).value_or(false));
  EXPECT_TRUE(rules.Decide("data/a/b", false).value_or(false));
  EXPECT_FALSE(rules.Decide("src/a/b.py", false).value_or(false));
  EXPECT_FALSE(rules.Decide("topo.xml", false).value_or(false));
  EXPECT_TRUE(rules.Decide("src/a/b.log", false).value_or(false));
  const IgnoreRules plain("*.pyc\n./build\n", IgnoreRules::Kind::kDocker);
  EXPECT_FALSE(plain.MayReinclude());
  EXPECT_TRUE(plain.Decide("a.pyc", false).value_or(false));
  EXPECT_FALSE(plain.Decide("d/a.pyc", false).value_or(false));
  EXPECT_TRUE(plain.Decide("build", false).value_or(false));
}

}  // namespace
}  // namespace tutti::client
