#include "platform/service/results/disk_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include "absl/cleanup/cleanup.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/status.h"
#include "base/test_patience.h"

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
  EXPECT_EQ(CheckRoom(folder.path(), 3 << 20), absl::OkStatus());
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "w", std::string(2 << 20, 'x')).ok());
  EXPECT_THAT(std::string(CheckRoom(folder.path(), 3 << 20).message()),
              testing::HasSubstr("the service's disk has 6 MiB free in " + folder.path().native() +
                                 ", which is too little for a file of 3 MiB; delete files"));
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "x", std::string(3 << 20, 'x')).ok());
  const absl::Status full = CheckRoom(folder.path());
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_THAT(std::string(full.message()),
              testing::HasSubstr("the service's disk is full: 3 MiB free in " +
                                 folder.path().native() + ", and below 4 MiB it takes no job"));
  EXPECT_EQ(CheckRoom(folder.path() / "none"), absl::OkStatus());
  const absl::Status never = CheckRoom(folder.path(), 7 << 20);
  EXPECT_TRUE(absl::IsOutOfRange(never)) << never;
  EXPECT_THAT(std::string(never.message()),
              testing::HasSubstr("a file of 7 MiB never fits on the service's disk, which has 8 "));
}

TEST(DiskRoomTest, ADiskThatTakesNoMoreFilesIsFull) {
  base::TemporaryDirectory folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64m,nr_inodes=300") != 0) {
    GTEST_SKIP() << "may not mount a small tmpfs";
  }
  const absl::Cleanup unmount = [&] { ::umount2(folder.path().c_str(), MNT_DETACH); };
  EXPECT_EQ(CheckRoom(folder.path()), absl::OkStatus());
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(base::ReplaceFile(folder.path() / std::to_string(i), "").ok());
  }
  const absl::Status full = CheckRoom(folder.path());
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_THAT(std::string(full.message()),
              testing::ContainsRegex("the service's disk is full: room for [0-9]+ more files in "
                                     ".*, and below 256 it takes no job"));
}

TEST(DiskRoomTest, AQuotaThatAWriteHasMetIsAFullDiskUntilAFileCanBeWritten) {
  base::TemporaryDirectory folder;
  DiskGauge gauge(folder.path() / "home");
  gauge.NoteWrite(absl::ResourceExhaustedError("too many open files"));
  EXPECT_EQ(gauge.Check(), absl::OkStatus());
  const absl::Status quota = base::ErrnoStatus("write x", EDQUOT);
  EXPECT_TRUE(IsFullDisk(quota));
  gauge.NoteWrite(quota);
  EXPECT_THAT(std::string(gauge.Check().message()),
              testing::HasSubstr("the service's disk is full: write x: Disk quota exceeded"));
  EXPECT_TRUE(absl::IsResourceExhausted(gauge.Look().status));
  // No file can be written in a folder that is not there.
  const base::Deadline later = base::Deadline::After(absl::Milliseconds(1500));
  while (!later.Expired()) EXPECT_FALSE(gauge.Check().ok());
  ASSERT_TRUE(base::MakeDirectories(folder.path() / "home").ok());
  const base::Deadline limit = base::Deadline::After(base::Patient(absl::Seconds(20)));
  while (!gauge.Check().ok() && !limit.Expired()) {
  }
  EXPECT_EQ(gauge.Check(), absl::OkStatus());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path() / "home"));
}

// A result of ten gigabytes that a quota refuses says nothing of what others write.
TEST(DiskRoomTest, ALargeWriteThatIsRefusedLeavesTheRestToOthers) {
  base::TemporaryDirectory folder;
  DiskGauge gauge(folder.path() / "home");
  const absl::Status quota = base::ErrnoStatus("taking room for x", EDQUOT);
  ASSERT_TRUE(base::MakeDirectories(folder.path() / "home").ok());
  gauge.NoteWrite(quota, uint64_t{10} << 30);
  EXPECT_EQ(gauge.Check(), absl::OkStatus());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path() / "home"));
  ASSERT_TRUE(base::RemoveTree(folder.path() / "home").ok());  // where none can be written
  gauge.NoteWrite(quota, uint64_t{10} << 30);
  EXPECT_TRUE(absl::IsResourceExhausted(gauge.Check()));
}

}  // namespace
}  // namespace tutti::service
