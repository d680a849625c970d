#include "base/disk_reserve.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "base/file.h"

namespace tutti::base {
namespace {

// On a disk of 8 MiB, which has to be its own, so that others do not write to it meanwhile.
TEST(DiskReserveTest, HoldsRoomUntilItIsGivenUpPartByPart) {
  TemporaryDirectory folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=8m") != 0) {
    GTEST_SKIP() << "may not mount a small tmpfs";
  }
  const absl::Cleanup unmount = [&] { ::umount2(folder.path().c_str(), MNT_DETACH); };
  DiskReserve reserve(folder.path() / "reserve");
  EXPECT_EQ(reserve.bytes(), 0u);
  EXPECT_FALSE(reserve.GiveUp());
  EXPECT_FALSE(reserve.Restore(8 << 20)) << "it would not leave so much";
  ASSERT_TRUE(reserve.Restore(0));
  EXPECT_EQ(reserve.bytes(), 512u << 10);
  EXPECT_EQ(*FreeBytes(folder.path()), (8u << 20) - (512u << 10));

  const auto filler = Open(folder.path() / "filler", O_WRONLY | O_CREAT);
  ASSERT_TRUE(filler.ok());
  const std::string page(4096, 'f');
  while (::write(filler->get(), page.data(), page.size()) > 0) continue;
  EXPECT_FALSE(WriteFileAtomic(folder.path() / "note", page).ok());
  EXPECT_TRUE(reserve.GiveUp());
  EXPECT_TRUE(WriteFileAtomic(folder.path() / "note", page).ok());
  EXPECT_EQ(DiskReserve(folder.path() / "reserve").bytes(), 256u << 10) << "for the next process";
  EXPECT_FALSE(reserve.Restore(0)) << "the disk is full";
  EXPECT_TRUE(reserve.GiveUp());
  EXPECT_FALSE(reserve.GiveUp()) << "nothing is left of it";
  std::filesystem::resize_file(folder.path() / "filler", 0);
  EXPECT_TRUE(reserve.Restore(0));
}

}  // namespace
}  // namespace tutti::base
