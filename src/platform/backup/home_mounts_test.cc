// Mounts of one disk, and those below a service's folder, are made by tests/interfaces/
// test_backup.py.
#include "platform/backup/home_mounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/machine/mounts.h"

namespace tutti::backup {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CheckNoMounts, AFolderWithoutAnyMayBeMoved) {
  const base::TemporaryDirectory folder;
  fs::create_directories(folder.path() / "jobs");
  EXPECT_EQ(CheckNoMounts(folder.path()), absl::OkStatus());
  EXPECT_EQ(CheckNoMounts(folder.path() / "jobs"), absl::OkStatus());
}

TEST(CheckNoMounts, AMountPointMayNot) {
  const absl::Status refused = CheckNoMounts("/proc");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("/proc is a mount point"), HasSubstr("--home FOLDER")));
}

TEST(CheckNoMounts, NorAFolderWithOneBelowIt) {
  const std::vector<base::Mount> mounts = base::ReadMounts();
  const auto is_point = [&](const std::string& path) {
    return std::any_of(mounts.begin(), mounts.end(),
                       [&](const base::Mount& mount) { return mount.point == path; });
  };
  for (const base::Mount& mount : mounts) {
    const std::string above = fs::path(mount.point).parent_path().string();
    if (above == "/" || is_point(above) || !fs::is_directory(above)) continue;
    const absl::Status refused = CheckNoMounts(above);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr(", a part of " + above + ", is a mount point"),
                      HasSubstr("unmount it"), HasSubstr("/etc/fstab")));
    return;
  }
  GTEST_SKIP() << "no folder here that is no mount point has one below it";
}

}  // namespace
}  // namespace tutti::backup
