#include "base/remove_tree.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/file.h"

namespace tutti::base {
namespace {

namespace fs = std::filesystem;

class RemoveTreeTest : public ::testing::Test {
 protected:
  void Put(const fs::path& file) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "x";
  }
  TemporaryDirectory folder_;
  const fs::path tree_ = folder_.path() / "tree";
  std::atomic<bool> stop_ = false;
};

TEST_F(RemoveTreeTest, RemovesFoldersThatNobodyMayWriteTo) {
  Put(tree_ / "closed/deep/file");
  Put(tree_ / "hidden/file");
  ::chmod((tree_ / "closed/deep").c_str(), 0555);
  ::chmod((tree_ / "closed").c_str(), 0555);
  ::chmod((tree_ / "hidden").c_str(), 0);
  EXPECT_EQ(RemoveTree(tree_, stop_), absl::OkStatus());
  EXPECT_FALSE(fs::exists(tree_));
}

TEST_F(RemoveTreeTest, RemovesLinksAndNotWhatTheyNameTo) {
  Put(folder_.path() / "kept/file");
  fs::create_directories(tree_);
  fs::create_directory_symlink(folder_.path() / "kept", tree_ / "link");
  EXPECT_EQ(RemoveTree(tree_, stop_), absl::OkStatus());
  EXPECT_FALSE(fs::exists(tree_));
  EXPECT_TRUE(fs::exists(folder_.path() / "kept/file"));
}

TEST_F(RemoveTreeTest, IsFineWithNothing) {
  EXPECT_EQ(RemoveTree(tree_, stop_), absl::OkStatus());
  Put(tree_);
  EXPECT_EQ(RemoveTree(tree_ / "below/a/file", stop_), absl::OkStatus());
}

TEST_F(RemoveTreeTest, EndsWhenItIsToldTo) {
  Put(tree_ / "a/file");
  stop_ = true;
  EXPECT_TRUE(absl::IsCancelled(RemoveTree(tree_, stop_)));
  EXPECT_TRUE(fs::exists(tree_ / "a/file"));
}

}  // namespace
}  // namespace tutti::base
