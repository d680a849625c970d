#include "platform/client/archive/git_code.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/test_patience.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

// GitCodeTest has a repository on this disk, with two commits; the first is tagged v1.
class GitCodeTest : public testing::Test {
 protected:
  GitCodeTest() {
    Git({"init", "--quiet", "--initial-branch=main"});
    Commit("src/a.txt", "one");
    Git({"tag", "v1"});
    first_ = Git({"rev-parse", "HEAD"});
    Commit("src/a.txt", "two");
    fs::create_symlink("/etc", repository_.path() / "out");
    Git({"add", "."});
    Git({"commit", "--quiet", "-m", "link"});
  }

  std::string Git(std::vector<std::string> arguments) {
    const fs::path file = scratch_.path() / "git";
    const auto log = base::Open(file, O_WRONLY | O_CREAT | O_TRUNC);
    arguments.insert(arguments.begin(),
                     {"git", "-c", "user.name=t", "-c", "user.email=t@example.org"});
    base::ChildOptions options{.arguments = std::move(arguments),
                               .environment = base::CurrentEnvironment(),
                               .directory = repository_.path()};
    options.stdout_fd = log->get();
    auto child = base::ChildProcess::Start(options);
    EXPECT_TRUE(child.ok() &&
                child->Wait(base::Deadline::After(base::Patient(absl::Seconds(30))))->ok());
    std::string text = base::ReadFile(file).value_or("");
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }
  void Commit(const std::string& name, const std::string& text) {
    ASSERT_TRUE(base::MakeDirectories((repository_.path() / name).parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(repository_.path() / name, text).ok());
    Git({"add", "."});
    Git({"commit", "--quiet", "-m", text});
  }
  absl::StatusOr<fs::path> Fetch(const std::string& revision, const std::string& folder) {
    return FetchGitCode({absl::StrCat("file://", repository_.path().string()), revision, folder},
                        scratch_.path() / absl::StrCat("clone", ++clones_),
                        base::Deadline::After(base::Patient(absl::Minutes(1))));
  }
  std::string ContentAt(const std::string& revision) {
    const auto folder = Fetch(revision, "src");
    EXPECT_TRUE(folder.ok()) << folder.status();
    return folder.ok() ? base::ReadFile(*folder / "a.txt").value_or("none") : "";
  }

  static std::map<std::string, std::string> Origin(const fs::path& folder) {
    return GitOrigin(folder, base::Deadline::After(base::Patient(absl::Seconds(30))));
  }

  base::TemporaryDirectory repository_, scratch_;
  std::string first_;
  int clones_ = 0;
};

TEST_F(GitCodeTest, FetchesABranchATagACommitOrTheDefault) {
  EXPECT_EQ(ContentAt(""), "two");
  EXPECT_EQ(ContentAt("main"), "two");
  EXPECT_EQ(ContentAt("v1"), "one");
  EXPECT_EQ(ContentAt(first_), "one");
  EXPECT_EQ(ContentAt(first_.substr(0, 10)), "one");
}

TEST_F(GitCodeTest, SaysInGitsWordsWhatCannotBeHad) {
  EXPECT_THAT(std::string(Fetch("v9", "").status().message()),
              HasSubstr("git cannot fetch v9 of file://"));
  EXPECT_THAT(std::string(Fetch("", "nothing").status().message()),
              HasSubstr("has no folder \"nothing\""));
}

TEST_F(GitCodeTest, ALinkInTheRepositoryLeadsNowhere) {
  EXPECT_THAT(std::string(Fetch("", "out").status().message()), HasSubstr("has no folder"));
}

TEST_F(GitCodeTest, AFolderInNoRepositoryOrWithoutACommitHasNoOrigin) {
  EXPECT_THAT(Origin(scratch_.path()), IsEmpty());
  EXPECT_THAT(Origin("/no/such/folder"), IsEmpty());
}

TEST_F(GitCodeTest, TheOriginIsTheCommitTheBranchAndTheRepositoryWithoutItsPassword) {
  Git({"remote", "add", "origin", "https://me:secret@example.com/a/b.git"});
  const std::string commit = Git({"rev-parse", "HEAD"});
  EXPECT_THAT(Origin(repository_.path() / "src"),
              UnorderedElementsAre(Pair("git_commit", commit), Pair("git_branch", "main"),
                                   Pair("git_repository", "https://example.com/a/b.git")));
  Git({"checkout", "--quiet", "--detach"});
  Git({"remote", "set-url", "origin", "git@example.com:a/b.git"});
  ASSERT_TRUE(base::WriteFileAtomic(repository_.path() / "untracked", "2").ok());
  EXPECT_THAT(Origin(repository_.path()),
              UnorderedElementsAre(Pair("git_commit", commit),
                                   Pair("git_repository", "git@example.com:a/b.git"),
                                   Pair("git_dirty", "true")));
}

}  // namespace
}  // namespace tutti::client
