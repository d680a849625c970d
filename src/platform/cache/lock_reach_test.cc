#include "platform/cache/lock_reach.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::cache {
namespace {

std::string Line(absl::string_view device, absl::string_view file_system,
                 absl::string_view options) {
  return absl::StrCat("36 35 ", device, " / /mnt rw,noatime shared:2 - ", file_system,
                      " server:/exports ", options, "\n");
}

TEST(LockReach, ReadsTheOptionsOfTheFoldersMount) {
  const std::string mounts = absl::StrCat(
      Line("0:50", "nfs4", "rw,vers=4.2,local_lock=none,addr=10.0.0.1"),
      Line("0:51", "nfs", "rw,vers=3,nolock,addr=10.0.0.1"),
      Line("0:52", "nfs4", "rw,local_lock=flock"), Line("0:53", "nfs", "rw,local_lock=all"),
      Line("0:54", "nfs", "rw,local_lock=posix"), Line("0:55", "lustre", "rw,flock,lazystatfs"),
      Line("0:56", "lustre", "rw,localflock"), Line("8:1", "ext4", "rw,nolock"));
  for (const char* device : {"0:50", "0:54", "0:55", "8:1", "0:57"}) {
    EXPECT_EQ(LocalLockOption(mounts, device), "") << device;
  }
  EXPECT_EQ(LocalLockOption(mounts, "0:51"), "nolock");
  EXPECT_EQ(LocalLockOption(mounts, "0:52"), "local_lock=flock");
  EXPECT_EQ(LocalLockOption(mounts, "0:53"), "local_lock=all");
  EXPECT_EQ(LocalLockOption(mounts, "0:56"), "localflock");
}

TEST(LockReach, ALineThatIsCutOffSaysNothing) {
  EXPECT_EQ(LocalLockOption("36 35\n36 35 0:51 / /mnt rw - nfs\n36 35 0:51 / /mnt\n", "0:51"), "");
}

TEST(LockReach, OfADiskOfThisMachineNothingIsSaid) {
  const base::TemporaryDirectory folder;
  EXPECT_TRUE(CheckLockReach(folder.path()).ok());
  EXPECT_TRUE(CheckLockReach(folder.path() / "none").ok());
}

}  // namespace
}  // namespace tutti::cache
