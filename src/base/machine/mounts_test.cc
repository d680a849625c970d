#include "base/machine/mounts.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/file.h"

namespace tutti::base {
namespace {

namespace fs = std::filesystem;

constexpr char kMountInfo[] =
    "22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
    "30 22 0:45 / /mnt rw,nosuid shared:2 master:1 - nfs4 server:/export rw,hard\n"
    "31 30 0:46 / /mnt/local rw - tmpfs tmpfs rw\n"
    "32 22 0:47 / /a\\040b rw - fuse.sshfs host:/ rw\n"
    "33 32 0:48 / /a\\040b rw - xfs /dev/sda rw\n"
    "broken\n";

TEST(Mounts, AreReadAsTheKernelTellsThem) {
  const std::vector<Mount> mounts = MountsFrom(kMountInfo);
  ASSERT_EQ(mounts.size(), 5u);
  EXPECT_EQ(mounts[1].point, "/mnt");
  EXPECT_EQ(mounts[1].type, "nfs4");
  EXPECT_NE(mounts[1].id, mounts[2].id);
  EXPECT_EQ(mounts[3].point, "/a b");
  EXPECT_EQ(mounts[3].type, "fuse.sshfs");
  EXPECT_FALSE(ReadMounts().empty());
}

TEST(Mounts, OfPathsAreTheInnermostAndTheLastOfAPoint) {
  const std::vector<Mount> mounts = MountsFrom(kMountInfo);
  for (const char* path : {"/mnt", "/mnt/", "/mnt/data/x", "/usr/../mnt/data", "/mnt/./local/x"}) {
    EXPECT_EQ(RemoteMountOf(path, mounts), "/mnt") << path << ": on the way at least";
  }
  for (const char* path : {"/", "/usr/bin", "/mnt2/x", "/a b/x", ""}) {
    EXPECT_EQ(RemoteMountOf(path, mounts), "") << path;
  }
}

TEST(Mounts, AreFoundBelowARootThatIsOnAServer) {
  const std::vector<Mount> mounts = {{"/", "nfs4"}, {"/data", "nfs4"}};
  EXPECT_EQ(RemoteMountOf("/usr/bin", mounts), "");
  EXPECT_EQ(RemoteMountOf("/data/x", mounts), "/data");
}

// Returns what is wrong; the caller has a mount namespace of its own.
const char* WrongOfWatchedMounts(const std::string& folder) {
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return "no private mounts";
  WatchedMounts mounts;
  const auto is_there = [&] {
    const auto now = mounts.Now();
    return std::any_of(now->begin(), now->end(),
                       [&](const Mount& mount) { return mount.point == folder; });
  };
  const auto before = mounts.Now();
  if (is_there()) return "a mount that is not there";
  if (mounts.Now() != before) return "read again though nothing has changed";
  if (::mount("none", folder.c_str(), "tmpfs", 0, nullptr) != 0) return "no tmpfs";
  if (!is_there()) return "a mount that was made is missing";
  if (::umount(folder.c_str()) != 0 || is_there()) return "a mount that has gone is there";
  return "nothing";
}

TEST(MountsDeathTest, AreReadAgainWhereOneHasChanged) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: it mounts";
  const TemporaryDirectory folder;
  const auto try_it = [&] {
    if (::unshare(CLONE_NEWNS) != 0) std::_Exit(2);
    std::fprintf(stderr, "wrong: %s\n", WrongOfWatchedMounts(fs::canonical(folder.path())));
    std::_Exit(0);
  };
  EXPECT_EXIT(try_it(), ::testing::ExitedWithCode(0), "wrong: nothing");
}

TEST(Mounts, AreFoundThroughLinks) {
  const TemporaryDirectory folder;
  const fs::path root = fs::canonical(folder.path());
  fs::create_directory(root / "far");
  fs::create_symlink("far/below", root / "near");
  fs::create_symlink(root / "near", root / "nearer");
  fs::create_symlink("circle", root / "circle");
  const std::vector<Mount> mounts = {{"/", "ext4"}, {(root / "far").native(), "nfs"}};
  EXPECT_EQ(RemoteMountOf(root / "nearer/file", mounts), root / "far");
  EXPECT_EQ(RemoteMountOf(root / "nearer/../../x", mounts), root / "far");
  EXPECT_EQ(RemoteMountOf(root / "circle/x", mounts), "");
  EXPECT_EQ(RemoteMountOf(root / "none/x", mounts), "");
}

TEST(Mounts, OfTypesThatAreNotKnownMayNeedAServer) {
  for (const char* type :
       {"nfs", "nfs4", "cifs", "lustre", "fuse", "autofs", "9p", "ceph", "new"}) {
    EXPECT_FALSE(IsLocal(type)) << type;
  }
  for (const char* type : {"ext4", "xfs", "tmpfs", "overlay"}) EXPECT_TRUE(IsLocal(type)) << type;
}

}  // namespace
}  // namespace tutti::base
