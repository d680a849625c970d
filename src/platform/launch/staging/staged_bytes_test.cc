#include "platform/launch/staging/staged_bytes.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include "absl/cleanup/cleanup.h"
#include "base/file.h"

namespace tutti::launch {
namespace {

constexpr uint64_t kMega = 1 << 20, kGiga = uint64_t{1} << 30;
constexpr char kFull[] = "write x: No space left on device";

TEST(StagedBytes, WhoHasWrittenMostOfWhatWasFreeHasFilledTheDisk) {
  EXPECT_TRUE(IsFilledBy(90 * kGiga, 100 * kGiga, 1000 * kGiga, false));
  EXPECT_FALSE(IsFilledBy(10 * kGiga, 100 * kGiga, 1000 * kGiga, false)) << "others have";
  EXPECT_FALSE(IsFilledBy(30 * kMega, 40 * kMega, 1000 * kGiga, false)) << "it was full before";
  EXPECT_TRUE(IsFilledBy(30 * kMega, 40 * kMega, 40 * kMega, false));
  EXPECT_TRUE(IsFilledBy(kGiga, 1000 * kGiga, 1000 * kGiga, true));
  EXPECT_FALSE(IsFilledBy(kMega, 1000 * kGiga, 1000 * kGiga, true));
}

TEST(StagedBytes, CountsWhatThisProcessWrites) {
  const base::TemporaryDirectory folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=16m") != 0) {
    GTEST_SKIP() << "may not mount a small tmpfs";
  }
  const absl::Cleanup unmount = [&] { ::umount2(folder.path().c_str(), MNT_DETACH); };
  const StagedBytes alone(folder.path(), 1), of_four(folder.path(), 4), none("", 1);
  ASSERT_TRUE(base::ReplaceFile(folder.path() / "x", std::string(3 * kMega, 'x')).ok());
  EXPECT_EQ(alone.FilledTheDisk(kFull), 0U);
  EXPECT_GE(of_four.FilledTheDisk(kFull), 12 * kMega);
  ASSERT_TRUE(base::ReplaceFile(folder.path() / "y", std::string(9 * kMega, 'x')).ok());
  EXPECT_GE(alone.FilledTheDisk(kFull), 12 * kMega);
  EXPECT_EQ(alone.FilledTheDisk("write x: Disk quota exceeded"), 0U);
  EXPECT_EQ(none.FilledTheDisk(kFull), 0U);
}

}  // namespace
}  // namespace tutti::launch
