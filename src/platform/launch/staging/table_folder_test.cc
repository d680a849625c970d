#include "platform/launch/staging/table_folder.h"

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <string>

#include "base/file.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class TableFolderTest : public ::testing::Test {
 protected:
  TableFolderTest() {
    for (const char* file : {"x/a.csv", "x/b.txt", "x/deep/a.csv", "y/a.csv", "one.csv"}) {
      const fs::path path = root_ / file;
      EXPECT_TRUE(base::MakeDirectories(path.parent_path()).ok());
      EXPECT_TRUE(base::WriteFileAtomic(path, file).ok());
    }
  }
  absl::Status Make(const std::vector<TablePart>& parts, TableFiles files = TableFiles::kLinks) {
    auto matched = MakeTableFolder(parts, made_, files, cancelled_);
    matched_ = matched.value_or(std::set<fs::path>());
    return matched.status();
  }
  // Its files, each with its content, which is what it is called where it lies.
  std::set<std::string> Files() const {
    std::set<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(made_)) {
      if (entry.is_directory()) continue;
      files.insert(entry.path().lexically_relative(made_).native() + " = " +
                   base::ReadFile(entry.path()).value_or("none"));
    }
    return files;
  }

  const base::TemporaryDirectory folder_;
  const fs::path root_ = folder_.path() / "data", made_ = folder_.path() / "made";
  std::atomic<bool> cancelled_ = false;
  std::set<fs::path> matched_;
};

TEST_F(TableFolderTest, HasWhatEachPathNamesWhereItIsPlaced) {
  ASSERT_TRUE(Make({{root_ / "x", "", "x"},
                    {root_ / "y", "*.csv", "y"},
                    {root_ / "one.csv", "", "deep/one.csv"}})
                  .ok());
  EXPECT_THAT(Files(), UnorderedElementsAre("x/a.csv = x/a.csv", "x/b.txt = x/b.txt",
                                            "x/deep/a.csv = x/deep/a.csv", "y/a.csv = y/a.csv",
                                            "deep/one.csv = one.csv"));
  EXPECT_TRUE(fs::is_symlink(made_ / "x/a.csv"));
}

TEST_F(TableFolderTest, APatternTakesFilesOfItsDepth) {
  ASSERT_TRUE(Make({{root_ / "x", "*.csv", ""}}).ok());
  EXPECT_THAT(Files(), UnorderedElementsAre("a.csv = x/a.csv"));
  EXPECT_THAT(matched_, UnorderedElementsAre(root_ / "x/a.csv"));
  fs::remove_all(made_);
  ASSERT_TRUE(Make({{root_, "**/[ab].*", ""}}).ok());
  EXPECT_EQ(Files().size(), 4U);
  fs::remove_all(made_);
  EXPECT_EQ(Make({{root_, "*.bin", ""}}).message(),
            "no file of " + root_.native() + " matches *.bin");
}

TEST_F(TableFolderTest, WhatTwoPathsNameIsThereOnce) {
  ASSERT_TRUE(Make({{root_ / "x", "", ""}, {root_ / "x/a.csv", "", "a.csv"}}).ok());
  EXPECT_EQ(Files().size(), 3U);
}

TEST_F(TableFolderTest, WhatTwoPatternsMatchCountsOnce) {
  ASSERT_TRUE(Make({{root_ / "x", "*.csv", "x"}, {root_, "x/*", ""}}).ok());
  EXPECT_THAT(matched_, UnorderedElementsAre(root_ / "x/a.csv", root_ / "x/b.txt"));
}

TEST_F(TableFolderTest, CopiesAreTheJobsOwn) {
  ASSERT_TRUE(Make({{root_ / "x", "*.csv", ""}}, TableFiles::kCopies).ok());
  EXPECT_FALSE(fs::is_symlink(made_ / "a.csv"));
  EXPECT_TRUE(base::WriteFileAtomic(made_ / "a.csv", "mine").ok());
  EXPECT_EQ(base::ReadFile(root_ / "x/a.csv").value_or(""), "x/a.csv");
}

TEST_F(TableFolderTest, AFileAndAFolderOfOneNameAreRefused) {
  EXPECT_THAT(std::string(Make({{root_ / "one.csv", "", "x"}, {root_ / "x", "", "x"}}).message()),
              HasSubstr("a file and a folder called x, which"));
  fs::remove_all(made_);
  EXPECT_THAT(std::string(Make({{root_ / "x", "", "x"}, {root_ / "one.csv", "", "x"}}).message()),
              HasSubstr("a file and a folder called x, which"));
}

TEST_F(TableFolderTest, LinkedFoldersStayLinksAndLoopsEnd) {
  fs::create_directory_symlink(root_, root_ / "x/deep/up");
  ASSERT_TRUE(Make({{root_ / "x", "", ""}}).ok());
  EXPECT_TRUE(fs::is_symlink(made_ / "deep/up"));
  fs::remove_all(made_);
  EXPECT_TRUE(Make({{root_, "**/*.csv", ""}}).ok());
  EXPECT_EQ(Files().size(), 4U);
}

TEST_F(TableFolderTest, APatternTakesRegularFilesAndThoseOfLinkedFolders) {
  fs::create_symlink("/nowhere", root_ / "y/dangling.csv");
  fs::create_directory_symlink(root_ / "x", root_ / "y/linked");
  ASSERT_TRUE(Make({{root_, "y/*.csv", ""}, {root_, "y/*/*.csv", ""}}, TableFiles::kCopies).ok());
  EXPECT_THAT(Files(), UnorderedElementsAre("y/a.csv = y/a.csv", "y/linked/a.csv = x/a.csv"));
}

TEST_F(TableFolderTest, NothingIsPlacedThroughALink) {
  fs::create_directory_symlink(root_ / "y", root_ / "x/link");
  EXPECT_THAT(
      std::string(Make({{root_ / "x", "", ""}, {root_ / "one.csv", "", "link/one.csv"}}).message()),
      HasSubstr("a file and a folder called link, which"));
  EXPECT_FALSE(fs::exists(root_ / "y/one.csv"));
}

TEST_F(TableFolderTest, EndsWhenItIsCancelled) {
  cancelled_ = true;
  EXPECT_TRUE(absl::IsCancelled(Make({{root_ / "x", "", ""}})));
}

}  // namespace
}  // namespace tutti::launch
