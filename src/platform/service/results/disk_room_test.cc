#include "platform/service/results/disk_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include "absl/cleanup/cleanup.h"
#include "base/file.h"

namespace tutti::service {
namespace {

TEST(DiskRoomTest, LeavesAPartOfEachDiskToWhatHasBegun) {
  EXPECT_EQ(LeastRoom(uint64_t{1} << 40), 64u << 20);
  EXPECT_EQ(LeastRoom(uint64_t{1} << 30), 16u << 20);
  EXPECT_EQ(LeastRoom(1 << 20), 4u << 20);
}

TEST(DiskRoomTest, SaysHowMuchIsFreeAndWhere) {
  base::TemporaryDirectory folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=8m") != 0) {
    GTEST_SKIP() << "may not mount a small tmpfs";
  }
  const absl::Cleanup unmount = [&] { ::umount2(folder.path().c_str(), MNT_DETACH); };
  EXPECT_EQ(CheckRoom(folder.path()), absl::OkStatus());
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "x", std::string(5 << 20, 'x')).ok());
  const absl::Status full = CheckRoom(folder.path());
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_THAT(std::string(full.message()),
              testing::HasSubstr("the service's disk is full: 3 MiB free in " +
                                 folder.path().native() + ", and below 4 MiB it takes no job"));
  EXPECT_EQ(CheckRoom(folder.path() / "none"), absl::OkStatus());
}

}  // namespace
}  // namespace tutti::service
