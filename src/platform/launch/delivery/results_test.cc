#include "platform/launch/delivery/results.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

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
           LeftOutNote(results) ==
               "left out of the results: outputs/closed (a file that may not be read), "
               "outputs/sub (a folder that may not be read)";
  }));
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
