#include "platform/launch/outputs/stored_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "base/file.h"
#include "base/test_patience.h"

namespace tutti::launch {
namespace {

class StoredFilesTest : public ::testing::Test {
 protected:
  StoredFiles Open() {
    auto opened = StoredFiles::Open(file_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }
  const base::TemporaryDirectory folder_;
  const std::filesystem::path file_ = folder_.path() / "stored" / "model.jsonl";
};

TEST_F(StoredFilesTest, AreKnownToTheNextLauncherAsTheyWere) {
  {
    StoredFiles stored = Open();
    ASSERT_TRUE(
        stored.Add("a/b", {.state = {3, 70, 71, 7}, .sha256 = "12", .etag = "e", .stored = 5})
            .ok());
    ASSERT_TRUE(stored.Add("c \"ö\"\n", {.state = {4, 80, 81, 8}, .sha256 = "34"}).ok());
    ASSERT_TRUE(stored.Add("a/b", {.state = {5, 90, 91, 9}, .sha256 = "56", .etag = "f"}).ok());
  }
  const StoredFiles stored = Open();
  EXPECT_EQ(stored.all().size(), 2u);
  EXPECT_TRUE(stored.Has("a/b", {5, 90, 91, 9}));
  EXPECT_FALSE(stored.Has("a/b", {3, 70, 71, 7})) << "the store has a newer one";
  EXPECT_EQ(stored.Times("a/b"), 2);
  EXPECT_TRUE(stored.Has("c \"ö\"\n", {4, 80, 81, 8}));
  EXPECT_EQ(stored.all().at("a/b").sha256, "56");
  EXPECT_EQ(stored.Times("never"), 0);
}

TEST_F(StoredFilesTest, ALineThatACrashHasCutOffIsLeftOutAndTheNextOneIsWhole) {
  {
    StoredFiles stored = Open();
    ASSERT_TRUE(stored.Add("a", {.state = {1, 1}, .sha256 = "1"}).ok());
  }
  std::ofstream(file_, std::ios::app) << "{\"path\": \"b\", \"byt";
  {
    StoredFiles stored = Open();
    EXPECT_FALSE(stored.Has("b", {0, 0}));
    ASSERT_TRUE(stored.Add("c", {.state = {2, 2}, .sha256 = "2"}).ok());
  }
  const StoredFiles stored = Open();
  EXPECT_TRUE(stored.Has("a", {1, 1}));
  EXPECT_TRUE(stored.Has("c", {2, 2}));
}

TEST_F(StoredFilesTest, ATimeThatWasSetBackAndAFileOfTheSameSizeAreNoticed) {
  const auto state = [&] { return *StateOf(folder_.path() / "a"); };
  ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / "a", "one").ok());
  const FileState first = state();
  const timespec back[2] = {{0, UTIME_OMIT},
                            {first.modified / 1'000'000'000, first.modified % 1'000'000'000}};
  // The disk's clock goes on by ticks.
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    std::ofstream(folder_.path() / "a") << "two";
    return ::utimensat(AT_FDCWD, (folder_.path() / "a").c_str(), back, 0) == 0 &&
           !(state() == first);
  }));
  const FileState second = state();
  EXPECT_EQ(second.bytes, first.bytes);
  EXPECT_EQ(second.modified, first.modified);
  ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / "a", "six").ok());
  EXPECT_NE(state().inode, second.inode);
}

TEST_F(StoredFilesTest, IsNotCertainOfAFileThatWasReadAsItWasWritten) {
  const int64_t second = 1'000'000'000;
  EXPECT_FALSE(IsCertain({.state = {.changed = 10 * second}, .hashed = 11 * second}));
  EXPECT_TRUE(IsCertain({.state = {.changed = 10 * second}, .hashed = 12 * second}));
  EXPECT_FALSE(IsCertain({.state = {.changed = 20 * second}, .hashed = 12 * second}))
      << "the disk's clock is ahead";
}

TEST_F(StoredFilesTest, TheListOfAFileThatChangesAllTheTimeIsWrittenAnew) {
  {
    StoredFiles stored = Open();
    for (int i = 0; i < 5000; ++i) {
      ASSERT_TRUE(stored.Add("a", {.state = {i, i, i, 1}, .sha256 = "1"}).ok());
    }
  }
  const auto before = std::filesystem::file_size(file_);
  {
    StoredFiles stored = Open();
    EXPECT_EQ(stored.Times("a"), 5000);
    ASSERT_TRUE(stored.Add("b", {.state = {1, 1, 1, 2}, .sha256 = "2"}).ok());
  }
  EXPECT_LT(std::filesystem::file_size(file_), before / 100);
  const StoredFiles stored = Open();
  EXPECT_TRUE(stored.Has("a", {4999, 4999, 4999, 1}));
  EXPECT_TRUE(stored.Has("b", {1, 1, 1, 2}));
}

}  // namespace
}  // namespace tutti::launch
