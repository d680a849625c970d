#include "platform/engine/local/new_mounts.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/file.h"

namespace tutti::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::SizeIs;

constexpr char kBefore[] =
    "27 1 8:1 / / rw,relatime - ext4 /dev/root rw\n"
    "30 27 0:5 / /shared rw shared:7 - tmpfs tmpfs rw\n";

TEST(NewMounts, WhatLiesOnASharedMountComesIntoEachNamespace) {
  const std::set<std::string> known = MountsIn(kBefore);
  EXPECT_THAT(known, SizeIs(2));
  EXPECT_FALSE(HasUnsharedMount(kBefore, known));
  const std::string more = kBefore;
  EXPECT_FALSE(HasUnsharedMount(
      more + "31 30 0:6 / /shared/a rw master:1 shared:9 - nfs4 server:/a rw\n", known));
  EXPECT_TRUE(HasUnsharedMount(more + "31 27 0:6 / /a rw - nfs4 server:/a rw\n", known));
  EXPECT_FALSE(HasUnsharedMount("a line of another kernel\n", known));
}

// The kernel gives the lowest number that is free.
TEST(NewMounts, OneThatHasTheNumberOfOneThatHasGoneIsNew) {
  const std::string before = kBefore, old = "31 27 0:6 / /data rw - nfs4 old:/data rw\n";
  const std::set<std::string> known = MountsIn(before + old);
  EXPECT_FALSE(HasUnsharedMount(before + "31 27 0:6 / /data ro - nfs4 old:/data ro\n", known));
  EXPECT_TRUE(HasUnsharedMount(before + "31 27 0:6 / /data rw - nfs4 new:/data rw\n", known));
  EXPECT_TRUE(HasUnsharedMount(before + "31 27 0:6 / /other rw - nfs4 old:/data rw\n", known));
  EXPECT_TRUE(HasUnsharedMount(before + "31 27 0:7 / /data rw - nfs4 old:/data rw\n", known));
}

// Else each container would cost a node the launcher that waits there.
TEST(NewMounts, WhatAContainerMountsForItselfIsNotLookedFor) {
  const std::string before = kBefore;
  const std::set<std::string> known = MountsIn(before);
  const std::string storage =
      "31 27 8:1 /var/lib/containers/storage/overlay /var/lib/containers/storage/overlay rw - ext4 "
      "/dev/root rw\n";
  for (const std::string& line :
       {storage,
        storage + "32 31 0:9 / /var/lib/containers/storage/overlay/0a1b/merged rw - overlay "
                  "overlay rw,lowerdir=/x\n",
        std::string("33 27 0:10 / /v/overlay-containers/0a1b/userdata/shm rw - tmpfs shm rw\n"),
        std::string("34 27 0:4 net:[4026532] /run/netns/netns-1 rw - nsfs nsfs rw\n")}) {
    EXPECT_FALSE(HasUnsharedMount(before + line, known)) << line;
  }
  for (const std::string& line :
       {std::string("31 27 8:1 /srv /mnt rw - ext4 /dev/root rw\n"),
        std::string("31 27 0:9 / /home/a rw - overlay overlay rw,lowerdir=/x\n"),
        std::string("31 27 0:9 / /data rw - tmpfs tmpfs rw\n")}) {
    EXPECT_TRUE(HasUnsharedMount(before + line, known)) << line;
  }
}

// Returns what is wrong, in a mount namespace of its own, where nobody else mounts anything.
std::string WrongOfNewMounts(const fs::path& folder) {
  const fs::path below = folder / "below";
  const auto mount_on = [](const fs::path& place, const char* source = "tmpfs") {
    return ::mount(source, place.c_str(), "tmpfs", 0, "size=1m") == 0;
  };
  const auto make = [](const fs::path& place, unsigned long how) {
    return ::mount(nullptr, place.c_str(), nullptr, how, nullptr) == 0;
  };
  if (!make("/", MS_REC | MS_PRIVATE) || !mount_on(folder)) return "its mounts";
  fs::create_directory(below);
  NewMounts mounts;
  if (mounts.Any()) return "one before there is any";
  if (!mount_on(below) || !mounts.Any()) return "none";
  if (mounts.Any()) return "the same twice";
  if (::umount(below.c_str()) != 0 || !mount_on(below, "another")) return "its mounts";
  if (!mounts.Any()) return "none that came in the place of another";
  if (::umount(below.c_str()) != 0 || mounts.Any()) return "one that has gone";
  if (!make(folder, MS_SHARED) || !mount_on(below) || mounts.Any()) return "one on a shared mount";
  return "nothing";
}

TEST(NewMountsDeathTest, AreToldOnce) {
  const base::TemporaryDirectory folder;
  const auto try_it = [&] {
    if (::unshare(CLONE_NEWNS) != 0) std::_Exit(2);
    const std::string wrong = WrongOfNewMounts(folder.path());
    std::fprintf(stderr, "wrong: %s\n", wrong.c_str());
    std::_Exit(0);
  };
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: it mounts";
  EXPECT_EXIT(try_it(), ::testing::ExitedWithCode(0), "wrong: nothing");
}

}  // namespace
}  // namespace tutti::engine
