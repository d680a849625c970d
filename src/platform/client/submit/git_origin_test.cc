#include "platform/client/submit/git_origin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/process/command.h"
#include "base/test_patience.h"

namespace tutti::client {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class GitOriginTest : public ::testing::Test {
 protected:
  // Runs git in the folder and returns what it prints.
  std::string Git(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"git", "-c", "user.name=n", "-c", "user.email=e"});
    const auto result = base::RunCommand({.arguments = std::move(arguments),
                                          .environment = base::CurrentEnvironment(),
                                          .directory = folder_.path()},
                                         "", Soon());
    EXPECT_TRUE(result.ok() && result->exit.ok());
    return result->out.substr(0, result->out.find('\n'));
  }
  static base::Deadline Soon() { return base::Deadline::After(base::Patient(absl::Seconds(30))); }
  std::map<std::string, std::string> Origin() { return GitOrigin(folder_.path(), Soon()); }
  void Write(const char* name, const char* text) {
    EXPECT_TRUE(base::ReplaceFile(folder_.path() / name, text).ok());
  }

  base::TemporaryDirectory folder_;
};

TEST_F(GitOriginTest, AFolderInNoRepositoryOrWithoutACommitHasNone) {
  EXPECT_THAT(Origin(), IsEmpty());
  Git({"init", "--quiet"});
  EXPECT_THAT(Origin(), IsEmpty());
  EXPECT_THAT(GitOrigin("/no/such/folder", Soon()), IsEmpty());
}

TEST_F(GitOriginTest, NamesTheCommitTheBranchAndTheRepositoryWithoutItsPassword) {
  Git({"init", "--quiet", "--initial-branch", "trunk"});
  Write("train.py", "1");
  Git({"add", "."});
  Git({"commit", "--quiet", "-m", "first"});
  Git({"remote", "add", "origin", "https://me:secret@example.com/a/b.git"});
  const std::string commit = Git({"rev-parse", "HEAD"});
  EXPECT_THAT(commit, SizeIs(40));
  EXPECT_THAT(Origin(),
              UnorderedElementsAre(Pair("git_commit", commit), Pair("git_branch", "trunk"),
                                   Pair("git_repository", "https://example.com/a/b.git")));
  Git({"checkout", "--quiet", "--detach"});
  Git({"remote", "set-url", "origin", "git@example.com:a/b.git"});
  Write("untracked", "2");
  EXPECT_THAT(Origin(), UnorderedElementsAre(Pair("git_commit", commit),
                                             Pair("git_repository", "git@example.com:a/b.git"),
                                             Pair("git_dirty", "true")));
}

}  // namespace
}  // namespace tutti::client
