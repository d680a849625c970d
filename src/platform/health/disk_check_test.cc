#include "platform/health/disk_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace tutti::health {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(DiskCheckTest, WritesReadsAndLeavesNothing) {
  const base::TemporaryDirectory folder;
  const NodeCheck check = CheckDisk("disk", folder.path());
  EXPECT_EQ(check.outcome, NodeCheck::Outcome::kWell) << check.detail;
  EXPECT_EQ(check.name, "disk");
  EXPECT_THAT(check.detail, HasSubstr("free, a file written and read in "));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(DiskCheckTest, AFolderThatIsGoneIsIll) {
  const base::TemporaryDirectory folder;
  const NodeCheck check = CheckDisk("disk", folder.path() / "gone");
  EXPECT_TRUE(check.ill());
  EXPECT_THAT(check.detail, HasSubstr("No such file or directory"));
}

TEST(DiskCheckTest, TooLittleSpaceAndTooFewInodesAreSaid) {
  const base::TemporaryDirectory folder;
  const std::string path = folder.path().native();
  NodeCheck check = CheckDisk("disk", folder.path(), {.bytes = uint64_t{1} << 62});
  EXPECT_TRUE(check.ill());
  EXPECT_THAT(check.detail, StartsWith(path + " has "));
  EXPECT_THAT(check.detail, HasSubstr(" left, and no job begins below "));
  EXPECT_TRUE(check.is_full);
  check = CheckDisk("disk", "/dev/shm", {.inodes = uint64_t{1} << 62});
  EXPECT_TRUE(check.ill());
  EXPECT_THAT(check.detail, HasSubstr(" more files, and no job begins below "));
  EXPECT_TRUE(check.is_full);
}

// Under the probe's name there is a folder, which no file can replace.
TEST(DiskCheckTest, AFileThatCannotBeWrittenIsToldWithItsError) {
  const base::TemporaryDirectory folder;
  ASSERT_TRUE(base::MakeDirectories(folder.path() / ".tutti-probe").ok());
  const NodeCheck check = CheckDisk("disk", folder.path());
  EXPECT_TRUE(check.ill());
  EXPECT_THAT(check.detail, HasSubstr(".tutti-probe: Is a directory"));
  EXPECT_FALSE(check.is_full);
}

}  // namespace
}  // namespace tutti::health
