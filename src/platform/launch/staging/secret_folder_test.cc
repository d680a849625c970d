#include "platform/launch/staging/secret_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <optional>
#include <string>

#include "base/file.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

class SecretFolderTest : public ::testing::Test {
 protected:
  spec::LaunchPlan Plan(const char* name) const {
    spec::LaunchPlan plan;
    plan.directory = folder_.path() / name;
    return plan;
  }
  void TearDown() override {
    for (const char* name : {"a", "b"}) SecretFolder::Remove(Plan(name)).IgnoreError();
  }
  const base::TemporaryDirectory folder_;
};

TEST_F(SecretFolderTest, HasFilesThatItsUserAloneReads) {
  const auto folder = SecretFolder::Make(Plan("a"));
  ASSERT_TRUE(folder.ok()) << folder.status();
  const auto file = folder->AddFile("KEY", std::string("one\0two\n", 8));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(fs::path(*file).parent_path(), SecretFolder::PathOf(Plan("a")));
  EXPECT_EQ(*base::ReadFile(*file), std::string("one\0two\n", 8));
  struct stat info = {};
  ASSERT_EQ(::stat(file->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0400u);
  ASSERT_EQ(::stat(SecretFolder::PathOf(Plan("a")).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_FALSE(folder->AddFile("KEY", "again").ok());
}

TEST_F(SecretFolderTest, HasANameThatNobodyCanMakeFirstWhoKnowsTheAllocationsFolderAlone) {
  spec::LaunchPlan plan = Plan("a");
  plan.job_token = "beef";
  const fs::path path = SecretFolder::PathOf(plan);
  EXPECT_EQ(SecretFolder::PathOf(plan), path);
  plan.job_token = "feed";
  EXPECT_NE(SecretFolder::PathOf(plan), path);
}

TEST_F(SecretFolderTest, IsRemovedByWhoKnowsThePlan) {
  ASSERT_TRUE(SecretFolder::Make(Plan("a")).ok());
  EXPECT_TRUE(fs::exists(SecretFolder::PathOf(Plan("a"))));
  EXPECT_TRUE(SecretFolder::Remove(Plan("a")).ok());
  EXPECT_FALSE(fs::exists(SecretFolder::PathOf(Plan("a"))));
  EXPECT_TRUE(SecretFolder::Remove(Plan("a")).ok());
}

TEST_F(SecretFolderTest, TheNextOneRemovesThoseThatNobodyHolds) {
  std::optional<SecretFolder> left = SecretFolder::Make(Plan("a")).value();
  ASSERT_TRUE(left->AddFile("KEY", "value").ok());
  {
    const SecretFolder other = SecretFolder::Make(Plan("b")).value();
    EXPECT_TRUE(fs::exists(SecretFolder::PathOf(Plan("a")))) << "it is held";
  }
  left.reset();  // as if its launcher had been killed
  const SecretFolder next = SecretFolder::Make(Plan("b")).value();
  EXPECT_FALSE(fs::exists(SecretFolder::PathOf(Plan("a"))));
  EXPECT_TRUE(fs::exists(SecretFolder::PathOf(Plan("b"))));
}

}  // namespace
}  // namespace tutti::launch
