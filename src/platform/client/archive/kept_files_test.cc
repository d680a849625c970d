#include "platform/client/archive/kept_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class KeptFilesTest : public testing::Test {
 protected:
  void Write(const fs::path& file, const std::string& text) {
    ASSERT_TRUE(base::MakeDirectories(file.parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(file, text).ok());
  }

  // Returns a component below `at`, with its code beside its folder.
  std::vector<fs::path> Project(const fs::path& at) {
    Write(at / "parts/train.yml", "code: ../src\n");
    Write(at / "src/main.py", "print(1)\n");
    Write(at / "src/data/big", "x\n");
    Write(at / "src/.gitignore", "data/\n");
    return {at / "parts/train.yml", at / "parts/../src"};
  }

  const base::TemporaryDirectory folder_, home_;
};

TEST_F(KeptFilesTest, AreFoundFromEachOtherAsBefore) {
  const auto found = FindFilesToKeep(Project(folder_.path()), home_.path());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->files,
              ElementsAre(folder_.path() / "parts/train.yml", folder_.path() / "src",
                          folder_.path() / "src/.gitignore", folder_.path() / "src/main.py"));
  const fs::path kept = home_.path() / "assets/component/train/1";
  ASSERT_TRUE(KeepFiles(*found, kept).ok());
  const fs::path file = KeptPath(kept, folder_.path() / "parts/train.yml");
  EXPECT_EQ(*base::ReadFile(file), "code: ../src\n");
  EXPECT_EQ(*base::ReadFile(file.parent_path() / "../src/main.py"), "print(1)\n");
  EXPECT_FALSE(fs::exists(file.parent_path() / "../src/data"));
}

TEST_F(KeptFilesTest, AreTheSameFromAnotherFolderAndOthersOnceTheyChange) {
  const auto first = FindFilesToKeep(Project(folder_.path() / "a"), home_.path());
  const auto second = FindFilesToKeep(Project(folder_.path() / "b"), home_.path());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->digest, second->digest);
  std::vector<fs::path> parts = Project(folder_.path() / "b");
  Write(folder_.path() / "b/src/main.py", "print(2)\n");
  EXPECT_NE(FindFilesToKeep(parts, home_.path())->digest, first->digest);
}

TEST_F(KeptFilesTest, WhatIsKeptAlreadyOrIsGoneIsLeftOut) {
  std::vector<fs::path> parts = Project(folder_.path());
  const std::string digest = FindFilesToKeep(parts, home_.path())->digest;
  Write(home_.path() / "assets/component/other/1/other.yml", "x\n");
  parts.push_back(home_.path() / "assets/component/other/1/other.yml");
  parts.push_back(folder_.path() / "gone");
  EXPECT_EQ(FindFilesToKeep(parts, home_.path())->digest, digest);
}

TEST_F(KeptFilesTest, ABuildsFolderIsKeptAsItsBuildGetsIt) {
  const fs::path build = folder_.path() / "docker";
  Write(folder_.path() / "env.yml", "build: {path: docker}\n");
  for (const char* file : {".gitignore", "topo.xml", ".git/HEAD", "raw/big", "raw/small/a"}) {
    Write(build / file, "topo.xml\n");
  }
  Write(build / ".dockerignore", "raw\n!raw/small\n");
  fs::create_symlink("/etc/hostname", build / "host");
  const auto found = FindFilesToKeep({folder_.path() / "env.yml"}, home_.path(), {build});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->files,
              ElementsAre(build, build / ".dockerignore", build / ".git", build / ".git/HEAD",
                          build / ".gitignore", build / "host", build / "raw/small",
                          build / "raw/small/a", build / "topo.xml", folder_.path() / "env.yml"));
}

TEST_F(KeptFilesTest, ABuildsPipeIsAnErrorAndIsNotWaitedFor) {
  Write(folder_.path() / "env.yml", "build: {path: docker}\n");
  Write(folder_.path() / "docker/Dockerfile", "FROM x\n");
  ASSERT_EQ(::mkfifo((folder_.path() / "docker/pipe").c_str(), 0600), 0);
  const auto found =
      FindFilesToKeep({folder_.path() / "env.yml"}, home_.path(), {folder_.path() / "docker"});
  EXPECT_THAT(std::string(found.status().message()),
              testing::HasSubstr("docker/pipe is no file, folder or link"));
}

TEST_F(KeptFilesTest, ALinkThatLeavesTheCodeIsAnError) {
  const std::vector<fs::path> parts = Project(folder_.path());
  fs::create_symlink("/etc/hostname", folder_.path() / "src/link");
  EXPECT_TRUE(absl::IsInvalidArgument(FindFilesToKeep(parts, home_.path()).status()));
}

}  // namespace
}  // namespace tutti::client
