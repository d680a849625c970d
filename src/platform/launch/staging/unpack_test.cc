#include "platform/launch/staging/unpack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "platform/code/code_archive_for_tests.h"

namespace tutti::launch {
namespace {

using code::TestArchive;
using code::TestEntry;
using ::testing::HasSubstr;

class Unpack : public ::testing::Test {
 protected:
  absl::Status Try(const std::vector<TestEntry>& entries) {
    EXPECT_TRUE(base::WriteFileAtomic(top.path() / "a.tar.zst", TestArchive(entries).bytes()).ok());
    return UnpackArchive(top.path() / "a.tar.zst", folder());
  }
  void ExpectRefused(const std::vector<TestEntry>& entries, const std::string& reason) {
    const absl::Status status = Try(entries);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(reason));
    EXPECT_TRUE(std::filesystem::is_empty(folder()));
    EXPECT_FALSE(std::filesystem::exists(top.path() / "evil"));
  }
  std::filesystem::path folder() const { return top.path() / "deep" / "work"; }
  const base::TemporaryDirectory top;
};

TEST_F(Unpack, MakesFilesFoldersAndLinksInside) {
  ASSERT_TRUE(Try({{"./", "", AE_IFDIR},
                   {"./a/b.txt", "text"},
                   {"empty", "", AE_IFDIR},
                   {"a/link", "../a/b.txt", AE_IFLNK},
                   {"dangling", "not/there", AE_IFLNK},
                   {"here", ".", AE_IFLNK}})
                  .ok());
  EXPECT_EQ(*base::ReadFile(folder() / "a/link"), "text");
  EXPECT_TRUE(std::filesystem::is_directory(folder() / "empty"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder() / "dangling"));
}

TEST_F(Unpack, AnArchiveThatCannotBeReadIsNotBrokenAndTheErrorIsSaid) {
  const absl::Status none = UnpackArchive(top.path() / "none.tar.zst", folder());
  EXPECT_THAT(std::string(none.message()), HasSubstr("none.tar.zst': No such file or directory"));
  EXPECT_THAT(std::string(none.message()), testing::Not(HasSubstr("broken")));
  const absl::Status no_file = UnpackArchive(top.path(), folder());
  EXPECT_THAT(std::string(no_file.message()), HasSubstr("Is a directory"));
}

TEST_F(Unpack, RefusesEntriesThatWouldLeaveTheFolder) {
  ExpectRefused({{"../evil", "x"}}, "would leave the folder");
  ExpectRefused({{"a/../../../evil", "x"}}, "would leave the folder");
  ExpectRefused({{"/tmp/evil", "x"}}, "no relative path");
  ExpectRefused({{"ok", "x"}, {"a/..", "", AE_IFDIR}}, "would leave the folder");
}

TEST_F(Unpack, RefusesLinksThatLeaveTheFolder) {
  ExpectRefused({{"l", "/etc/passwd", AE_IFLNK}}, "link that leaves");
  ExpectRefused({{"l", "../x", AE_IFLNK}}, "link that leaves");
  ExpectRefused({{"a/l", "../../x", AE_IFLNK}}, "link that leaves");
  // Each of these looks harmless by its name alone.
  ExpectRefused({{"x/y/l1", "../..", AE_IFLNK}, {"l2", "x/y/l1/..", AE_IFLNK}}, "link that leaves");
  ExpectRefused({{"a", ".", AE_IFLNK}, {"a/b", "..", AE_IFLNK}}, "below a link");
}

TEST_F(Unpack, OfALinkWhoseEndCannotBeFoundTheErrorIsSaid) {
  const absl::Status status = Try({{"a", "b", AE_IFLNK}, {"b", "a", AE_IFLNK}});
  EXPECT_THAT(std::string(status.message()), HasSubstr("a: Too many levels of symbolic links"));
}

TEST_F(Unpack, WritesNoFileThroughALink) {
  const absl::Status status = Try({{"l", "..", AE_IFLNK}, {"l/evil", "x"}});
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(std::filesystem::exists(top.path() / "deep/evil"));
}

TEST_F(Unpack, RefusesDevicesPipesAndHardLinks) {
  ExpectRefused({{"pipe", "", AE_IFIFO}}, "neither file, folder nor link");
  ExpectRefused({{"device", "", AE_IFCHR}}, "neither file, folder nor link");
  ExpectRefused({{"f", "x"}, {"hard", "../../evil", AE_IFREG, true}}, "a hard link");
}

TEST_F(Unpack, RefusesWhatIsNoArchiveOrIsCut) {
  const auto file = top.path() / "b";
  ASSERT_TRUE(base::WriteFileAtomic(file, "no archive at all").ok());
  EXPECT_FALSE(UnpackArchive(file, folder()).ok());
  const std::string bytes =
      TestArchive(std::vector<TestEntry>(1, {"f", code::RandomBytes(20000)})).bytes();
  ASSERT_TRUE(base::WriteFileAtomic(file, bytes.substr(0, bytes.size() / 2)).ok());
  EXPECT_FALSE(UnpackArchive(file, folder()).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder()));
}

}  // namespace
}  // namespace tutti::launch
