#include "platform/client/archive/snapshot_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "platform/client/archive/snapshot.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;

class SnapshotFilesTest : public testing::Test {
 protected:
  SnapshotFilesTest() {
    EXPECT_TRUE(base::MakeDirectories(code_ / "sub").ok());
    EXPECT_TRUE(base::WriteFileAtomic(code_ / "sub/run.sh", "echo hi\n", 0755).ok());
    fs::create_symlink("sub/run.sh", code_ / "link");
    EXPECT_TRUE(PackCode(code_, archive_).ok());
  }

  const base::TemporaryDirectory folder_;
  const fs::path code_ = folder_.path() / "code", archive_ = folder_.path() / "code.tar.zst",
                 to_ = folder_.path() / "to";
};

TEST_F(SnapshotFilesTest, AreThoseThatWerePackedWithoutLinks) {
  ASSERT_TRUE(UnpackFiles(archive_, to_, 100).ok());
  EXPECT_EQ(*base::ReadFile(to_ / "sub/run.sh"), "echo hi\n");
  EXPECT_EQ(::access((to_ / "sub/run.sh").c_str(), X_OK), 0);
  EXPECT_FALSE(fs::exists(fs::symlink_status(to_ / "link")));
}

TEST_F(SnapshotFilesTest, AreNoMoreThanAskedFor) {
  EXPECT_TRUE(absl::IsResourceExhausted(UnpackFiles(archive_, to_, 7)));
}

TEST_F(SnapshotFilesTest, SaysWhatIsNoArchive) {
  EXPECT_TRUE(absl::IsInvalidArgument(UnpackFiles(code_ / "sub/run.sh", to_, 100)));
}

}  // namespace
}  // namespace tutti::client
