#include "spec/command/code.h"

#include <gmock/gmock.h>

namespace tutti::spec {
namespace {

void ExpectCode(const char* written, const char* url, const char* revision, const char* folder) {
  EXPECT_TRUE(IsGitCode(written)) << written;
  const auto code = ParseGitCode(written);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(code->url, url);
  EXPECT_EQ(code->revision, revision);
  EXPECT_EQ(code->folder, folder);
}

TEST(GitCodeTest, ReadsEveryWayToWriteIt) {
  ExpectCode("git+https://e.org/a/p.git", "https://e.org/a/p.git", "", "");
  ExpectCode("git+https://e.org/a/p@v1.2#subdirectory=x/y", "https://e.org/a/p", "v1.2", "x/y");
  ExpectCode("https://e.org/a/p.git#main:train", "https://e.org/a/p.git", "main", "train");
  ExpectCode("https://e.org/a/p.git#:train", "https://e.org/a/p.git", "", "train");
  ExpectCode("git+ssh://git@e.org/a/p.git@0a1b", "ssh://git@e.org/a/p.git", "0a1b", "");
  ExpectCode("git@e.org:a/p.git", "ssh://git@e.org/a/p.git", "", "");
  ExpectCode("git+file:///srv/p", "file:///srv/p", "", "");
  ExpectCode("git://e.org/p", "git://e.org/p", "", "");
}

TEST(GitCodeTest, ATokenIsRefusedAndNotShown) {
  for (const char* written :
       {"git+https://hunter22@e.org/a/p.git@v1", "https://me:hunter22@e.org/a/p.git#main",
        "git+http:///hunter22@e.org/p", "git+https://me\\:hunter22@e.org/p"}) {
    const absl::Status refused = ParseGitCode(written).status();
    EXPECT_THAT(
        std::string(refused.message()),
        ::testing::AllOf(::testing::HasSubstr("credential helper"), ::testing::HasSubstr("…@e.org"),
                         ::testing::Not(::testing::HasSubstr("hunter22"))))
        << written;
  }
}

TEST(GitCodeTest, PathsAreNoRepositories) {
  for (const char* code : {"./src", "src.git", "/git+x", "https://e.org/archive.zip", "github"}) {
    EXPECT_FALSE(IsGitCode(code)) << code;
  }
}

TEST(GitCodeTest, RefusesWhatWouldRunProgramsOrLeaveTheRepository) {
  for (const char* code :
       {"git+ext::sh -c id", "git+https://e.org/p.git@--upload-pack=x", "git+p", "git@e.org",
        "git+https://e.org/p.git#subdirectory=../x", "git+https://e.org/p.git#main:/etc",
        "git+https://e.org/p.git#main:a/../../b", "git+https://e.org/p.git@a b"}) {
    EXPECT_FALSE(ParseGitCode(code).ok()) << code;
  }
}

}  // namespace
}  // namespace tutti::spec
