#include "platform/launch/delivery/results.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "platform/launch/node/node_folders.h"

namespace tutti::launch {
namespace {
namespace fs = std::filesystem;

constexpr uid_t kUser = 61236;  // to whom modes count

class ResultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(work() / "outputs/sub");
    fs::create_directories(work() / "logs");
    for (const char* name : {"outputs/kept", "outputs/closed", "outputs/sub/below"}) {
      ASSERT_TRUE(base::WriteFileAtomic(work() / name, "x").ok());
    }
    if (::geteuid() != 0) return;
    ASSERT_EQ(::chown(folder_.path().c_str(), kUser, kUser), 0);
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      ASSERT_EQ(::chown(entry.path().c_str(), kUser, kUser), 0);
    }
  }
  void TearDown() override {
    for (const char* name : {"outputs", "outputs/sub"}) ::chmod((work() / name).c_str(), 0755);
  }

  void Close(const char* name) { ASSERT_EQ(::chmod((work() / name).c_str(), 0), 0); }

  // Returns whether `holds` is true of what a user without privileges finds.
  bool ForAUser(const std::function<bool(const Results&)>& holds) const {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::geteuid() == 0 && ::setresuid(kUser, kUser, kUser) != 0) ::_exit(2);
      spec::LaunchPlan plan;
      plan.directory = folder_.path().string();
      ::_exit(holds(ResultsOf(plan)) ? 0 : 1);
    }
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  fs::path work() const { return NodeFolders(folder_.path()).work(); }

  const base::TemporaryDirectory folder_;
};

TEST_F(ResultsTest, WhatMayNotBeReadIsNamedAndTheRestIsKept) {
  Close("outputs/closed");
  Close("outputs/sub");
  EXPECT_TRUE(ForAUser([](const Results& results) {
    return results.failure.ok() && results.files.size() == 1 &&
           results.files[0].path == "outputs/kept" &&
           results.left_out ==
               std::vector<std::string>{"outputs/closed (a file that may not be read)",
                                        "outputs/sub (a folder that may not be read)"};
  }));
}

TEST_F(ResultsTest, AnEmptyFolderIsNamedButNotThatOfAnOutputItself) {
  ASSERT_TRUE(fs::create_directories(work() / "outputs/plots/late"));
  spec::LaunchPlan plan;
  plan.directory = folder_.path().string();
  const Results results = ResultsOf(plan);
  EXPECT_EQ(results.left_out, std::vector<std::string>());
  EXPECT_EQ(results.empty_folders, std::vector<std::string>{"outputs/plots/late"});
}

TEST_F(ResultsTest, NamesTheFoldersWithFilesWhereOtherNodesMayHaveThemEmpty) {
  const Results results = {.files = {{"", "outputs/a/b/c"}, {"", "outputs/a/d"}, {"", "logs/e"}},
                           .left_out = {"1", "2", "3", "4", "5", "6"},
                           .empty_folders = {"outputs/f"}};
  nlohmann::json alone, among_others;
  DescribeLeftOut(results, /*has_other_nodes=*/false, alone);
  EXPECT_EQ(alone, (nlohmann::json{{"left_out", {"1", "2", "3", "4", "5"}},
                                   {"left_out_more", 1},
                                   {"empty_folders", {"outputs/f"}}}));
  DescribeLeftOut(results, /*has_other_nodes=*/true, among_others);
  EXPECT_EQ(among_others["filled_folders"], (nlohmann::json{"outputs/a", "outputs/a/b"}));
}

TEST_F(ResultsTest, ALinkThatLeadsOutOfTheJobIsNamedAndNotFollowed) {
  const base::TemporaryDirectory elsewhere;
  const fs::path secret = fs::canonical(elsewhere.path()) / "secret";
  ASSERT_TRUE(base::WriteFileAtomic(secret, "x").ok());
  const NodeFolders folders(folder_.path());
  fs::create_directories(work() / "checkpoints");
  fs::create_directories(folders.outputs() / "model");
  fs::create_directories(folders.inputs());
  for (const fs::path& file : {work() / "checkpoints/best", folders.outputs() / "model/weights",
                               folders.inputs() / "data"}) {
    ASSERT_TRUE(base::WriteFileAtomic(file, "x").ok());
  }
  fs::create_symlink("../checkpoints/best", work() / "outputs/best");
  fs::create_symlink("best", work() / "outputs/again");
  fs::create_symlink(folders.outputs() / "model/weights", work() / "outputs/weights");
  fs::create_symlink(secret, work() / "outputs/shadow");
  fs::create_symlink(secret.parent_path(), work() / "outputs/folder");
  fs::create_symlink(folders.inputs() / "data", work() / "outputs/input");
  fs::create_symlink(secret, work() / "checkpoints/last");
  fs::create_symlink("../checkpoints/last", work() / "outputs/last");
  spec::LaunchPlan plan;
  plan.directory = folder_.path().string();

  const Results results = ResultsOf(plan);
  std::set<std::string> paths;
  for (const Result& result : results.files) paths.insert(result.path);
  EXPECT_EQ(paths, (std::set<std::string>{"outputs/again", "outputs/best", "outputs/closed",
                                          "outputs/kept", "outputs/sub/below", "outputs/weights"}));
  const std::string out = " (a link out of the job's folder, to ";
  const std::string input = fs::canonical(folders.inputs() / "data").string();
  EXPECT_EQ(
      results.left_out,
      (std::vector<std::string>{
          "outputs/folder (a link out of its folder, to " + secret.parent_path().string() + ")",
          "outputs/input" + out + input + ")", "outputs/last" + out + secret.string() + ")",
          "outputs/shadow" + out + secret.string() + ")"}));
}

TEST_F(ResultsTest, AFolderOfResultsThatTheJobMadeALinkIsNamedAndNotFollowed) {
  const base::TemporaryDirectory elsewhere;
  const fs::path there = fs::canonical(elsewhere.path());
  ASSERT_TRUE(base::WriteFileAtomic(there / "secret", "x").ok());
  for (const char* name : {"outputs", "logs"}) {
    fs::remove_all(work() / name);
    fs::create_directory_symlink(there, work() / name);
  }
  spec::LaunchPlan plan;
  plan.directory = folder_.path().string();
  const Results results = ResultsOf(plan);
  EXPECT_TRUE(results.files.empty());
  const std::string out = " (a link out of the job's folder, to " + there.string() + ")";
  EXPECT_EQ(results.left_out, (std::vector<std::string>{"logs" + out, "outputs" + out}));
}

TEST_F(ResultsTest, AJobThatClosesItsOutputsIsToldSo) {
  Close("outputs");
  EXPECT_TRUE(ForAUser([](const Results& results) {
    return results.failure.message() ==
           "read ./outputs: Permission denied; a job must keep its right to read it";
  }));
}

}  // namespace
}  // namespace tutti::launch
