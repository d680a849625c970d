#include "base/machine/memory_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/hash.h"

namespace tutti::base {
namespace {

namespace fs = std::filesystem;

// A kind that no other process of this user looks for.
class MemoryFolderTest : public ::testing::Test {
 protected:
  ~MemoryFolderTest() override {
    for (const char* name : {"a", "b"}) RemoveTree(MemoryFolder::PathOf(kind_, name)).IgnoreError();
  }
  MemoryFolder Make(const char* name) {
    auto made = MemoryFolder::Make(kind_, name, "files of a test");
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  const std::string kind_ = "test-" + RandomHex(8);
};

TEST_F(MemoryFolderTest, IsItsUsersAloneAndStaysWhenTheObjectGoes) {
  const fs::path path = Make("a").path();
  EXPECT_EQ(path, MemoryFolder::PathOf(kind_, "a"));
  struct stat info = {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  EXPECT_EQ(info.st_uid, ::geteuid());
}

TEST_F(MemoryFolderTest, OneThatIsHeldStaysAndOthersOfItsKindAreRemoved) {
  std::optional<MemoryFolder> held = Make("a");
  std::ofstream(held->path() / "file") << "x";
  const fs::path other = Make("b").path();
  EXPECT_TRUE(fs::exists(held->path() / "file"));
  MemoryFolder::RemoveUnheld(kind_);
  EXPECT_TRUE(fs::exists(held->path() / "file"));
  EXPECT_FALSE(fs::exists(other));
  held.reset();
  MemoryFolder::RemoveUnheld(kind_);
  EXPECT_FALSE(fs::exists(MemoryFolder::PathOf(kind_, "a")));
}

TEST_F(MemoryFolderTest, TakesThePlaceOfOneOfItsName) {
  std::ofstream(Make("a").path() / "file") << "x";
  const MemoryFolder next = Make("a");
  EXPECT_TRUE(fs::is_empty(next.path()));
}

}  // namespace
}  // namespace tutti::base
