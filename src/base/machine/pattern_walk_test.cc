#include "base/machine/pattern_walk.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::base {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class PatternWalkTest : public ::testing::Test {
 protected:
  PatternWalkTest() {
    for (const char* file : {"a.csv", "x/a.csv", "x/b.txt", "x/deep/a.csv", "y/a.csv"}) {
      EXPECT_TRUE(MakeDirectories((root_ / file).parent_path()).ok());
      EXPECT_TRUE(WriteFileAtomic(root_ / file, file).ok());
    }
  }
  absl::Status Walk(const std::string& pattern) {
    found_.clear();
    met_ = 0;
    return WalkPattern(
        root_, pattern, Wildcards::kClasses, [&] { return ++met_ <= most_; },
        [&](const fs::path& below) {
          EXPECT_TRUE(found_.insert(below.native()).second) << below << " came twice";
          return absl::OkStatus();
        });
  }
  std::set<std::string> Found(const std::string& pattern) {
    EXPECT_TRUE(Walk(pattern).ok());
    return found_;
  }

  const TemporaryDirectory folder_;
  const fs::path root_ = folder_.path() / "data";
  std::set<std::string> found_;
  int met_ = 0, most_ = 1000;  // names
};

TEST_F(PatternWalkTest, FindsWhatThePatternMatches) {
  EXPECT_THAT(Found("*.csv"), UnorderedElementsAre("a.csv"));
  EXPECT_THAT(Found("[xy]/*.csv"), UnorderedElementsAre("x/a.csv", "y/a.csv"));
  EXPECT_THAT(Found("**/a.csv"),
              UnorderedElementsAre("a.csv", "x/a.csv", "x/deep/a.csv", "y/a.csv"));
  EXPECT_THAT(Found("x/**"), UnorderedElementsAre("x/a.csv", "x/b.txt", "x/deep/a.csv"));
  EXPECT_THAT(Found("**/**/deep/*"), UnorderedElementsAre("x/deep/a.csv"));
  EXPECT_THAT(Found("x"), IsEmpty()) << "a folder";
  EXPECT_FALSE(WalkPattern(root_ / "none", "*", Wildcards::kPlain, [] { return true; }, {}).ok());
}

TEST_F(PatternWalkTest, GoesNoDeeperThanThePattern) {
  EXPECT_TRUE(Walk("*.csv").ok());
  EXPECT_EQ(met_, 3) << "a.csv, x and y";
  EXPECT_TRUE(Walk("y/*").ok());
  EXPECT_EQ(met_, 4) << "and what y has";
}

TEST_F(PatternWalkTest, WhatMayNotBeListedHasNoFiles) {
  fs::permissions(root_ / "y", fs::perms::none);
  EXPECT_THAT(Found("x/*.csv"), UnorderedElementsAre("x/a.csv"));
  EXPECT_TRUE(Found("*/a.csv").contains("x/a.csv"));
  fs::permissions(root_ / "y", fs::perms::owner_all);
}

TEST_F(PatternWalkTest, WhatIsGoneByThenHasNoFiles) {
  std::set<std::string> found;
  const absl::Status walk = WalkPattern(
      root_, "[xy]/*.csv", Wildcards::kClasses,
      [&] {
        fs::remove_all(root_ / "y");  // is listed by now
        return true;
      },
      [&](const fs::path& below) {
        found.insert(below.native());
        return absl::OkStatus();
      });
  EXPECT_TRUE(walk.ok()) << walk;
  EXPECT_THAT(found, UnorderedElementsAre("x/a.csv"));
}

TEST_F(PatternWalkTest, FindsRegularFilesAlone) {
  fs::create_symlink("/nowhere", root_ / "y/dangling.csv");
  fs::create_symlink(root_ / "a.csv", root_ / "y/link.csv");
  ASSERT_EQ(::mkfifo((root_ / "y/pipe.csv").c_str(), 0600), 0);
  EXPECT_THAT(Found("y/*.csv"), UnorderedElementsAre("y/a.csv", "y/link.csv"));
}

TEST_F(PatternWalkTest, EntersLinkedFoldersThatAComponentNamesAndNoLoop) {
  fs::create_directory_symlink(root_ / "x", root_ / "y/link");
  fs::create_directory_symlink(root_, root_ / "x/deep/up");
  EXPECT_THAT(Found("y/*/*.csv"), UnorderedElementsAre("y/link/a.csv"));
  EXPECT_THAT(Found("**/*.csv"),
              UnorderedElementsAre("a.csv", "x/a.csv", "x/deep/a.csv", "y/a.csv"));
  EXPECT_THAT(Found("**/up/*.csv"), UnorderedElementsAre("x/deep/up/a.csv"));
}

TEST_F(PatternWalkTest, EndsWhenItMayNotGoOn) {
  most_ = 1;
  EXPECT_TRUE(absl::IsCancelled(Walk("**")));
}

TEST(WalkTree, EndsAtAFolderThatLiesInItselfAndTellsWhatIsNoFile) {
  const TemporaryDirectory root;
  fs::create_directories(root.path() / "a/b");
  ASSERT_TRUE(WriteFileAtomic(root.path() / "a/b/file", "x").ok());
  fs::create_symlink("..", root.path() / "a/up");
  fs::create_symlink("a/b", root.path() / "beside");
  fs::create_symlink("nowhere", root.path() / "dangling");
  ASSERT_EQ(::mkfifo((root.path() / "pipe").c_str(), 0600), 0);
  const auto walk = [&](bool recursive) {
    std::vector<std::string> met;
    EXPECT_TRUE(WalkTree(root.path(), recursive, [&](const TreeEntry& entry) {
                  const std::string path = entry.path.lexically_relative(root.path()).native();
                  met.push_back(absl::StrCat(path, entry.error == 0 ? "" : ": ",
                                             entry.error == 0 ? "" : WhyNoFile(entry)));
                  return absl::OkStatus();
                }).ok());
    return met;
  };
  EXPECT_THAT(
      walk(true),
      UnorderedElementsAre("a", "a/b", "a/b/file", "a/up: a link to a folder that it lies in",
                           "beside", "beside/file", "dangling: a link to nothing", "pipe: a pipe"));
  EXPECT_THAT(walk(false),
              UnorderedElementsAre("a", "beside", "dangling: a link to nothing", "pipe: a pipe"));
  EXPECT_TRUE(absl::IsNotFound(
      WalkTree(root.path() / "none", true, [](const TreeEntry&) { return absl::OkStatus(); })));
}

TEST(WalkTree, FollowsNoLinkToAFolderThatHoldsTheWalkedOne) {
  const TemporaryDirectory root;
  fs::create_directories(root.path() / "walked/inside");
  fs::create_directories(root.path() / "other");
  ASSERT_TRUE(WriteFileAtomic(root.path() / "other/big", "x").ok());
  fs::create_symlink("..", root.path() / "walked/up");
  fs::create_symlink("/", root.path() / "walked/inside/top");
  fs::create_symlink("../other", root.path() / "walked/beside");
  fs::create_symlink("walked", root.path() / "link");
  for (const char* name : {"walked", "link"}) {
    std::vector<std::string> met, ended;
    EXPECT_TRUE(WalkTree(root.path() / name, true, [&](const TreeEntry& entry) {
                  (entry.error == ELOOP ? ended : met)
                      .push_back(entry.path.lexically_relative(root.path() / name).native());
                  return absl::OkStatus();
                }).ok());
    EXPECT_THAT(met, UnorderedElementsAre("inside", "beside", "beside/big"));
    EXPECT_THAT(ended, UnorderedElementsAre("up", "inside/top"));
  }
}

}  // namespace
}  // namespace tutti::base
