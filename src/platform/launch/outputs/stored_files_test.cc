#include "platform/launch/outputs/stored_files.h"

#include <gmock/gmock.h>

#include <fstream>

#include "base/file.h"

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
        stored.Add("a/b", {.state = {3, 70}, .sha256 = "12", .etag = "e", .stored = 5}).ok());
    ASSERT_TRUE(stored.Add("c \"ö\"\n", {.state = {4, 80}, .sha256 = "34"}).ok());
    ASSERT_TRUE(stored.Add("a/b", {.state = {5, 90}, .sha256 = "56", .etag = "f"}).ok());
  }
  const StoredFiles stored = Open();
  EXPECT_EQ(stored.all().size(), 2u);
  EXPECT_TRUE(stored.Has("a/b", {5, 90}));
  EXPECT_FALSE(stored.Has("a/b", {3, 70})) << "the store has a newer one";
  EXPECT_EQ(stored.Times("a/b"), 2);
  EXPECT_TRUE(stored.Has("c \"ö\"\n", {4, 80}));
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

}  // namespace
}  // namespace tutti::launch
