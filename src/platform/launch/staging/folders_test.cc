// Covers: platform/launch/node/private_name.cc.
#include "platform/launch/staging/folders.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

class FoldersTest : public ::testing::Test {
 protected:
  FoldersTest() {
    plan_.directory = folder_.path() / std::string(80, 'a');
    plan_.job_token = base::RandomHex(16);
    plan_.nodes.push_back(
        {.name = "n1", .address = "127.0.0.1", .first_rank = 0, .process_count = 1});
  }
  ~FoldersTest() override { RemoveShortScratch(plan_); }
  fs::path scratch() const { return NodeFolders(plan_.directory).scratch(); }

  const base::TemporaryDirectory folder_{"folders"};
  spec::LaunchPlan plan_;
};

TEST_F(FoldersTest, AScratchWithALongPathHasAShortLinkAsLongAsItsJob) {
  ASSERT_TRUE(MakeFolders(plan_).ok());
  const fs::path link = ShortScratch(plan_);
  EXPECT_LE(link.native().size(), 64u);
  EXPECT_EQ(fs::read_symlink(link), scratch());
  RemoveShortScratch(plan_);
  EXPECT_FALSE(fs::is_symlink(link));
  plan_.directory = "/short";
  EXPECT_EQ(ShortScratch(plan_), "/short/scratch");
}

TEST_F(FoldersTest, WhoKnowsTheScratchsPathAloneCannotTakeTheLinksName) {
  const fs::path guess =
      absl::StrCat("/tmp/tutti-", base::Hex(base::Sha256Of(scratch().native())).substr(0, 16));
  ASSERT_TRUE(fs::create_directory(guess));
  const absl::Cleanup remove = [&guess] { fs::remove_all(guess); };
  std::ofstream(guess / "taken");
  const absl::Status made = MakeFolders(plan_);
  EXPECT_TRUE(made.ok()) << made;
  spec::LaunchPlan other = plan_;
  other.job_token = base::RandomHex(16);
  EXPECT_NE(ShortScratch(other), ShortScratch(plan_));
}

TEST_F(FoldersTest, TheLinkOfALauncherBeforeStaysAndAnythingElseIsNotFollowed) {
  ASSERT_TRUE(MakeFolders(plan_).ok());
  EXPECT_TRUE(MakeFolders(plan_).ok());
  const fs::path link = ShortScratch(plan_);
  fs::remove(link);
  fs::create_symlink("/elsewhere", link);
  EXPECT_TRUE(absl::IsAlreadyExists(MakeFolders(plan_)));
}

}  // namespace
}  // namespace tutti::launch
