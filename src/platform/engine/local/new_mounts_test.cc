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
using ::testing::ElementsAre;

constexpr char kBefore[] =
    "27 1 8:1 / / rw,relatime - ext4 /dev/root rw\n"
    "30 27 0:5 / /shared rw shared:7 - tmpfs tmpfs rw\n";

TEST(NewMounts, WhatLiesOnASharedMountComesIntoEachNamespace) {
  const std::set<std::string> known = MountNumbers(kBefore);
  EXPECT_THAT(known, ElementsAre("27", "30"));
  EXPECT_FALSE(HasUnsharedMount(kBefore, known));
  const std::string more = kBefore;
  EXPECT_FALSE(HasUnsharedMount(
      more + "31 30 0:6 / /shared/a rw master:1 shared:9 - nfs4 server:/a rw\n", known));
  EXPECT_TRUE(HasUnsharedMount(more + "31 27 0:6 / /a rw - nfs4 server:/a rw\n", known));
  EXPECT_FALSE(HasUnsharedMount("a line of another kernel\n", known));
}

// Returns what is wrong, in a mount namespace of its own, where nobody else mounts anything.
std::string WrongOfNewMounts(const fs::path& folder) {
  const fs::path below = folder / "below";
  const auto mount_on = [](const fs::path& place) {
    return ::mount("tmpfs", place.c_str(), "tmpfs", 0, "size=1m") == 0;
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
