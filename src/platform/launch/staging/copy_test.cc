#include "platform/launch/staging/copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include "absl/cleanup/cleanup.h"
#include "base/file.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class CopyTest : public ::testing::Test {
 protected:
  CopyTest() {
    fs::create_directories(from_ / "a/b");
    EXPECT_TRUE(base::WriteFileAtomic(from_ / "a/b/file", "content").ok());
  }
  absl::Status CopyAll() { return Copy(from_, to_, cancelled_); }
  std::string Copied(const char* path) const {
    return base::ReadFile(to_ / path, 100).value_or("nothing");
  }

  const base::TemporaryDirectory folder_;
  const fs::path from_ = folder_.path() / "from", to_ = folder_.path() / "to";
  std::atomic<bool> cancelled_ = false;
};

TEST_F(CopyTest, OfWhatIsReadOnlyCanBeWrittenTo) {
  fs::permissions(from_ / "a/b/file", fs::perms::owner_read | fs::perms::others_read);
  fs::permissions(from_ / "a/b", fs::perms::owner_read | fs::perms::owner_exec);
  ASSERT_TRUE(CopyAll().ok());
  for (const char* path : {"a/b", "a/b/file"}) {
    EXPECT_NE(fs::status(to_ / path).permissions() & fs::perms::owner_write, fs::perms::none);
  }
  EXPECT_NE(fs::status(to_ / "a/b/file").permissions() & fs::perms::others_read, fs::perms::none);
}

TEST_F(CopyTest, ThatThereIsNoRoomIsSaidOfWhereItIsCopiedTo) {
  ASSERT_TRUE(base::MakeDirectories(to_).ok());
  if (::mount("tmpfs", to_.c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "may not mount a small tmpfs";
  }
  const absl::Cleanup unmount = [&] { ::umount2(to_.c_str(), MNT_DETACH); };
  ASSERT_TRUE(base::ReplaceFile(from_ / "large", std::string(1 << 20, 'x')).ok());
  EXPECT_THAT(std::string(CopyAll().message()),
              HasSubstr("to " + (to_ / "large").native() + ": No space left on device"));
}

TEST_F(CopyTest, FollowsLinksToFilesAndToFoldersBesideThem) {
  fs::create_symlink("b/file", from_ / "a/file");
  fs::create_symlink("a/b", from_ / "one");
  fs::create_symlink("a/b", from_ / "two");
  ASSERT_TRUE(CopyAll().ok());
  for (const char* path : {"a/b/file", "a/file", "one/file", "two/file"}) {
    EXPECT_EQ(Copied(path), "content") << path;
  }
  EXPECT_FALSE(fs::is_symlink(to_ / "one"));
}

TEST_F(CopyTest, ALinkToAFolderAboveItIsRefused) {
  fs::create_symlink("../..", from_ / "a/b/up");
  fs::create_symlink("../..", from_ / "a/b/again");
  const absl::Status status = CopyAll();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("a/b/"));
}

TEST_F(CopyTest, FoldersThatLinkToEachOtherAreRefused) {
  fs::create_directories(from_ / "c");
  fs::create_symlink("../c", from_ / "a/c");
  fs::create_symlink("../a", from_ / "c/a");
  EXPECT_TRUE(absl::IsInvalidArgument(CopyAll()));
}

TEST_F(CopyTest, IsCancelled) {
  cancelled_ = true;
  EXPECT_TRUE(absl::IsCancelled(CopyAll()));
}

}  // namespace
}  // namespace tutti::launch
