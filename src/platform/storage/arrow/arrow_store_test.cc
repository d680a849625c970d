// Local folders by Arrow; tests/storage/ runs the other stores. Covers:
// platform/storage/objects/object_store.h.
#include "platform/storage/arrow/arrow_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/file.h"

namespace tutti::storage {
namespace {

class ArrowStoreTest : public ::testing::Test {
 protected:
  ArrowStoreTest() : store_(std::move(OpenArrowStore({}, {}, 4)).value()) {}
  std::string Path(const std::string& name) const { return (folder_.path() / name).string(); }

  base::TemporaryDirectory folder_;
  const std::unique_ptr<ObjectStore> store_;
};

TEST_F(ArrowStoreTest, PutsReadsListsAndRemoves) {
  ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / "from", "hello").ok());
  int64_t sent = 0;
  const auto count = [&](int64_t bytes) {
    sent += bytes;
    return absl::OkStatus();
  };
  ASSERT_TRUE(store_->Put(Path("a/b/c"), folder_.path() / "from", count).ok());
  EXPECT_EQ(sent, 5);
  const auto listed = store_->List(Path("a"), true);
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ((*listed)[0].path, Path("a/b/c"));
  const auto in_it = store_->List(Path("a"), false);
  ASSERT_TRUE(in_it.ok()) << in_it.status();
  ASSERT_EQ(in_it->size(), 1u);
  EXPECT_EQ((*in_it)[0].path, Path("a/b/"));
  const auto reader = store_->Open(Path("a/b/c"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->object().bytes, 5);
  EXPECT_NE((*reader)->object().etag, "");
  std::string bytes(3, ' ');
  ASSERT_TRUE((*reader)->Read(2, bytes).ok());
  EXPECT_EQ(bytes, "llo");
  EXPECT_FALSE((*reader)->Read(3, bytes).ok());
  std::string streamed;
  const auto take = [&](absl::string_view piece) {
    streamed += std::string(piece);
    return absl::OkStatus();
  };
  ASSERT_TRUE((*reader)->Stream(1, 4, take).ok());
  EXPECT_EQ(streamed, "ello");
  EXPECT_FALSE((*reader)->Stream(1, 5, take).ok());
  ASSERT_TRUE(store_->Remove(Path("a/b/c")).ok());
  EXPECT_EQ(*store_->KindOf(Path("a/b/c")), PathKind::kNothing);
  EXPECT_EQ(*store_->KindOf(Path("a/b")), PathKind::kFolder);
  EXPECT_TRUE(absl::IsNotFound(store_->Open(Path("a/b/c")).status()));
  ASSERT_TRUE(store_->RemoveFolder(Path("a")).ok());
  EXPECT_EQ(*store_->KindOf(Path("a")), PathKind::kNothing);
  EXPECT_TRUE(store_->RemoveFolder(Path("a")).ok());
}

TEST_F(ArrowStoreTest, ListsAFolderWithALinkToItsParentOnceAndTellsWhatIsNoFile) {
  ASSERT_TRUE(base::MakeDirectories(folder_.path() / "a").ok());
  ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / "a/file", "hello").ok());
  std::filesystem::create_symlink("..", folder_.path() / "a/up");
  std::filesystem::create_symlink("nowhere", folder_.path() / "a/dangling");
  const auto listed = store_->List(folder_.path().string(), true);
  ASSERT_TRUE(listed.ok()) << listed.status();
  std::map<std::string, std::string> left_out;
  for (const StoredObject& object : *listed) left_out[object.path] = object.left_out;
  EXPECT_EQ(left_out, (std::map<std::string, std::string>{
                          {Path("a/file"), ""},
                          {Path("a/up"), "a link to a folder that it lies in"},
                          {Path("a/dangling"), "a link to nothing"}}));
}

TEST(OpenArrowStore, LeavesSharesOfAzureFilesToTheirOwnStore) {
  const auto store = OpenArrowStore({spec::StoreKind::kAzureFile, "acme", "share"}, {}, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(store.status())) << store.status();
}

}  // namespace
}  // namespace tutti::storage
