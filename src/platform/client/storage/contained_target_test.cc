#include "platform/client/storage/contained_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ContainedTargetTest : public ::testing::Test {
 protected:
  ContainedTargetTest() {
    for (const fs::path& folder : {served_, outside_}) {
      EXPECT_TRUE(base::MakeDirectories(folder).ok());
    }
  }
  absl::StatusOr<ContainedTarget> Open() const { return ContainedTarget::Open(served_, ".stage"); }
  static void Write(const fs::path& file, const std::string& content) {
    ASSERT_TRUE(base::MakeDirectories(file.parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(file, content).ok());
  }
  static std::string Content(const fs::path& file) { return base::ReadFile(file).value_or("none"); }

  const base::TemporaryDirectory folder_;
  const fs::path real_ = fs::canonical(folder_.path());
  const fs::path served_ = real_ / "served", outside_ = real_ / "outside";
};

TEST_F(ContainedTargetTest, GivesFilesTheirNames) {
  const auto target = Open();
  ASSERT_TRUE(target.ok()) << target.status();
  Write(target->stage() / "x/new", "new");
  Write(served_ / "a/b/c", "old");
  ASSERT_TRUE(target->Take("x/new", "a/b/c").ok());
  EXPECT_EQ(Content(served_ / "a/b/c"), "new");
  Write(target->stage() / "x/top", "top");
  ASSERT_TRUE(target->Take("x/top", "top").ok());
  EXPECT_EQ(Content(served_ / "top"), "top");
  EXPECT_EQ(fs::status(served_ / ".stage").permissions(), fs::perms::owner_all);
}

TEST_F(ContainedTargetTest, FollowsNoLinkOnTheWayWheneverItWasMade) {
  const auto target = Open();
  ASSERT_TRUE(target.ok()) << target.status();
  Write(target->stage() / "x", "x");
  fs::create_directory_symlink(outside_, served_ / "train");
  const absl::Status taken = target->Take("x", "train/deep/x");
  EXPECT_THAT(std::string(taken.message()),
              AllOf(HasSubstr((served_ / "train").native()), HasSubstr("is a link or a file")));
  EXPECT_FALSE(target->Take("x", "../outside/x").ok());
  EXPECT_TRUE(fs::is_empty(outside_));
  EXPECT_EQ(Content(target->stage() / "x"), "x");
}

TEST_F(ContainedTargetTest, AFileTakesALinksPlaceAndNotThatOfItsFile) {
  const auto target = Open();
  ASSERT_TRUE(target.ok()) << target.status();
  Write(outside_ / "file", "of others");
  fs::create_symlink(outside_ / "file", served_ / "x");
  Write(target->stage() / "x", "x");
  ASSERT_TRUE(target->Take("x", "x").ok());
  EXPECT_EQ(Content(outside_ / "file"), "of others");
  EXPECT_FALSE(fs::is_symlink(served_ / "x"));
}

TEST_F(ContainedTargetTest, ItsStageStaysItsOwnWhateverGetsItsName) {
  const auto target = Open();
  ASSERT_TRUE(target.ok()) << target.status();
  fs::rename(served_ / ".stage", served_ / "away");
  fs::create_directory_symlink(outside_, served_ / ".stage");
  Write(target->stage() / "x", "x");
  ASSERT_TRUE(target->Take("x", "x").ok());
  EXPECT_EQ(Content(served_ / "x"), "x");
  EXPECT_TRUE(fs::is_empty(outside_));
}

TEST_F(ContainedTargetTest, RefusesAStageOrAFolderThatIsAnothers) {
  fs::create_directory_symlink(outside_, served_ / ".stage");
  EXPECT_THAT(std::string(Open().status().message()), HasSubstr("is a link or a file"));
  fs::remove(served_ / ".stage");
  ASSERT_TRUE(Open().ok());
  fs::permissions(served_ / ".stage", fs::perms::all);
  EXPECT_THAT(std::string(Open().status().message()), HasSubstr("others may write: remove it"));
  fs::create_directory_symlink(served_, real_ / "link");
  EXPECT_THAT(std::string(ContainedTarget::Open(real_ / "link", "s").status().message()),
              HasSubstr("is a link or a file"));
}

}  // namespace
}  // namespace tutti::client
