#include "base/machine/folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "base/file.h"

namespace tutti::base {
namespace {

TEST(Folder, NamesWhatLiesInIt) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(NamesIn(folder.path()).empty());
  EXPECT_TRUE(NamesIn(folder.path() / "none").empty());
  ASSERT_TRUE(ReplaceFile(folder.path() / "a", "").ok());
  std::filesystem::create_directory(folder.path() / "b");
  EXPECT_THAT(NamesIn(folder.path()), testing::UnorderedElementsAre("a", "b"));
}

TEST(Folder, TellsWhenAFileOrFolderWasChangedAndOfALinkNothing) {
  const TemporaryDirectory folder;
  const auto file = folder.path() / "a";
  ASSERT_TRUE(ReplaceFile(file, "").ok());
  const timespec times[2] = {{5, 0}, {1'700'000'000, 0}};
  for (const auto& path : {file, folder.path()}) {
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    EXPECT_EQ(ChangedAt(path), absl::FromUnixSeconds(1'700'000'000)) << path;
  }
  std::filesystem::create_symlink(file, folder.path() / "link");
  EXPECT_EQ(ChangedAt(folder.path() / "link"), std::nullopt);
  EXPECT_EQ(ChangedAt(folder.path() / "none"), std::nullopt);
}

TEST(Folder, FindsTheNearestAboveThatIsThere) {
  const TemporaryDirectory folder;
  EXPECT_EQ(NearestThatIsThere(folder.path() / "a" / "b"), folder.path());
  EXPECT_EQ(NearestThatIsThere(folder.path()), folder.path());
  EXPECT_EQ(NearestThatIsThere("/nothing-of-this-name/a"), "/");
}

}  // namespace
}  // namespace tutti::base
