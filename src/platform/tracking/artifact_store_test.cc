// Covers: artifact_store.cc, platform/tracking/values/artifact_path.cc.
#include "platform/tracking/artifact_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_patience.h"

namespace tutti::tracking {
namespace {

namespace fs = std::filesystem;

class ArtifactStoreTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open(std::function<absl::Status(uint64_t)> check_room = nullptr) {
    store_.reset();
    auto store = ArtifactStore::Open(folder_.path() / "tracking", std::move(check_room));
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  absl::Status Put(absl::string_view path, absl::string_view content) {
    const auto upload = store_->Begin(path, static_cast<int64_t>(content.size()));
    if (!upload.ok()) return upload.status();
    const absl::Status written = (*upload)->Write(content);
    return written.ok() ? (*upload)->Commit() : written;
  }
  std::string ContentOf(absl::string_view path) {
    const auto file = store_->Find(path);
    return file.ok() ? base::ReadFile(*file).value_or("?") : std::string(file.status().message());
  }
  int Arriving() {
    int files = 0;
    for ([[maybe_unused]] const auto& entry :
         fs::directory_iterator(folder_.path() / "tracking" / "incoming")) {
      ++files;
    }
    return files;
  }

  base::TemporaryDirectory folder_;
  std::unique_ptr<ArtifactStore> store_;
};

TEST_F(ArtifactStoreTest, FilesAreListedReadReplacedAndRemoved) {
  ASSERT_TRUE(Put("0/r/artifacts/model/weights", "abc").ok());
  ASSERT_TRUE(Put("0/r/artifacts/a", "").ok());
  ASSERT_TRUE(Put("0/r/artifacts/model/weights", "abcd").ok());
  EXPECT_EQ(ContentOf("0/r/artifacts/model/weights"), "abcd");
  const auto entries = store_->List("0/r/artifacts");
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].name, "a");
  EXPECT_FALSE((*entries)[0].is_folder);
  EXPECT_TRUE((*entries)[1].is_folder);
  EXPECT_EQ(store_->List("0/r/artifacts/model")->front().bytes, 4);
  EXPECT_TRUE(store_->List("none")->empty());
  ASSERT_TRUE(store_->Remove("0/r/artifacts/a").ok());
  ASSERT_TRUE(store_->Remove("0/r/artifacts/model").ok());
  EXPECT_TRUE(store_->Remove("0/r/artifacts/model").ok());
  EXPECT_TRUE(store_->List("0/r/artifacts")->empty());
  EXPECT_TRUE(absl::IsNotFound(store_->Find("0/r").status()));
}

TEST_F(ArtifactStoreTest, NoPathLeadsOut) {
  for (const char* path : {"/etc/passwd", "../x", "a/../../x", "a//b", "a/.", "./a", "a/"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Put(path, "x"))) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(store_->Find(path).status())) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(store_->List(path).status())) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(store_->Remove(path))) << path;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Put("", "x")));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Remove("")));
  EXPECT_TRUE(absl::IsInvalidArgument(Put(absl::string_view("a\0b", 3), "x")));
}

TEST_F(ArtifactStoreTest, AFileAndAFolderDoNotHaveOneName) {
  ASSERT_TRUE(Put("a/b", "x").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Put("a", "x")));
  EXPECT_TRUE(absl::IsInvalidArgument(Put("a/b/c", "x")));
  EXPECT_EQ(ContentOf("a/b"), "x");
  EXPECT_EQ(Arriving(), 0);
}

TEST_F(ArtifactStoreTest, WhatIsNotWholeIsNotSeenAndLeavesNothing) {
  {
    const auto upload = store_->Begin("a", 3);
    ASSERT_TRUE((*upload)->Write("x").ok());
    EXPECT_TRUE(absl::IsNotFound(store_->Find("a").status()));
    EXPECT_EQ(Arriving(), 1);
  }
  EXPECT_EQ(Arriving(), 0);
}

TEST_F(ArtifactStoreTest, WhatAKilledProcessLeftIsRemoved) {
  store_.reset();
  const fs::path folder = folder_.path() / "tracking";
  ASSERT_TRUE(base::WriteFileAtomic(folder / "incoming" / "0", "left").ok());
  fs::create_directory(folder / "removed-0");
  Open();
  EXPECT_EQ(Arriving(), 0);
  base::AwaitPatiently(absl::Seconds(20), [&] {
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 2;
  });
  ASSERT_TRUE(Put("a", "x").ok());
}

TEST_F(ArtifactStoreTest, AFullDiskTakesNoFile) {
  Open([](uint64_t bytes) {
    return bytes > 2 ? absl::ResourceExhaustedError("full") : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsResourceExhausted(Put("a", "xyz")));
  EXPECT_TRUE(Put("a", "x").ok());
}

TEST_F(ArtifactStoreTest, RoomIsLookedAtAgainOnceItIsTaken) {
  int asked = 0;
  Open([&asked](uint64_t) {
    return ++asked == 2 ? absl::ResourceExhaustedError("full") : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsResourceExhausted(store_->Begin("a", 1 << 20).status()));
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(Arriving(), 0);
}

TEST_F(ArtifactStoreTest, AnUploadOfUnknownLengthLeavesTheRoomThatOthersNeed) {
  bool full = false;
  Open(
      [&full](uint64_t) { return full ? absl::ResourceExhaustedError("full") : absl::OkStatus(); });
  const auto upload = store_->Begin("a", -1);
  ASSERT_TRUE(upload.ok()) << upload.status();
  const std::string piece(1 << 20, 'x');
  ASSERT_TRUE((*upload)->Write(piece).ok());
  full = true;
  absl::Status status;
  for (int i = 0; i < 8 && status.ok(); ++i) status = (*upload)->Write(piece);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

}  // namespace
}  // namespace tutti::tracking
