#include "platform/launch/ranks/rank_command.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/test_patience.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

class RankCommandTest : public ::testing::Test {
 protected:
  RankCommandTest() {
    Write("bin/with_shebang", "#!/bin/sh\necho shebang \"$0\" \"$@\"\n", 0755);
    Write("bin/without", "echo of the shell\n", 0755);
    Write("bin/unreadable_for_all", "#!/bin/sh\n", 0644);
    Write("bin/no_interpreter", "#!/no/such\n", 0755);
    fs::create_directory(folder_.path() / "bin/a_folder");
  }

  void Write(const std::string& name, const std::string& text, int mode) const {
    fs::create_directories((folder_.path() / name).parent_path());
    ASSERT_TRUE(base::ReplaceFile(folder_.path() / name, text, mode).ok());
  }

  // All that it prints, and how it ends.
  std::string Result(const RankCommand& command) const {
    const fs::path log = folder_.path() / "log";
    fs::remove(log);
    const auto fd = base::Open(log, O_WRONLY | O_CREAT);
    base::ChildOptions options;
    options.arguments = command.arguments;
    options.environment = command.environment;
    options.directory = folder_.path();
    options.stdout_fd = options.stderr_fd = fd->get();
    auto child = base::ChildProcess::Start(options);
    if (!child.ok()) return std::string(child.status().message());
    const auto end = child->Wait(base::Deadline::After(base::Patient(absl::Seconds(30))));
    // Variables come in no order.
    std::vector<std::string> lines = absl::StrSplit(*base::ReadFile(log), '\n');
    std::sort(lines.begin(), lines.end());
    return absl::StrCat(absl::StrJoin(lines, "\n"), "\n", end->ToString());
  }

  Variables environment() const {
    return {{"PATH", absl::StrCat((folder_.path() / "bin").string(), ":/usr/bin:/bin")},
            {"RANK", "3"}};
  }

  const base::TemporaryDirectory folder_;
};

TEST_F(RankCommandTest, RunsAsUnderBash) {
  for (const char* command :
       {"env", "/usr/bin/env", "with_shebang a --b=c", "without", "unreadable_for_all", "a_folder",
        "no_such_program", "bin/with_shebang x", "./bin/without", "/no/such", "printenv RANK",
        "false", "sh -c exit", "cat /no/such/file", "echo $RANK", "pwd", "ls -d bin"}) {
    const RankCommand started = RankCommandOf(command, environment(), folder_.path());
    const RankCommand by_bash{{"/bin/bash", "-c", command}, environment()};
    EXPECT_EQ(Result(started), Result(by_bash)) << command;
  }
}

TEST_F(RankCommandTest, StartsAProgramWithoutAShell) {
  const RankCommand command = RankCommandOf("env -u A", environment(), folder_.path());
  EXPECT_THAT(command.arguments, testing::ElementsAre("env", "-u", "A"));
}

TEST_F(RankCommandTest, LeavesItToTheShellWhereThatIsTold) {
  for (const auto& [name, value] : Variables{
           {"BASH_ENV", "setup.sh"}, {"SHELLOPTS", "xtrace"}, {"PATH", "bin:/usr/bin:/bin"}}) {
    Variables told = environment();
    told[name] = value;
    EXPECT_EQ(RankCommandOf("env", told, folder_.path()).arguments.size(), 3u) << name;
  }
}

}  // namespace
}  // namespace tutti::launch
