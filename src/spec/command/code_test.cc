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

TEST(CodeInStoreTest, IsAnAddressOfAnyStore) {
  for (const char* code :
       {"azureml://datastores/scripts/paths/train", "azureml://datastores/scripts",
        "azureml://subscriptions/s/resourcegroups/r/workspaces/w/datastores/scripts/paths/a",
        "wasbs://box@acme.blob.core.windows.net/train", "abfss://box@acme.dfs.core.windows.net/a/",
        "https://acme.blob.core.windows.net/box/train.py",
        "https://acme.file.core.windows.net/share/train", "s3://bucket/train", "gs://bucket/train",
        "nfs://server/export/train"}) {
    EXPECT_TRUE(IsCodeInStore(code)) << code;
    EXPECT_TRUE(IsRemoteCode(code)) << code;
    EXPECT_FALSE(IsGitCode(code)) << code;
    EXPECT_TRUE(CheckCodeInStore(code).ok()) << CheckCodeInStore(code);
  }
}

TEST(CodeInStoreTest, PathsRepositoriesAndOtherServersAreNone) {
  for (const char* code :
       {"", "./src", "/src", "src:1", "https://e.org/archive.zip", "azureml:code:1",
        "azureml://jobs/j/outputs/o/paths/a", "azureml://registries/r/codes/c/versions/1"}) {
    EXPECT_FALSE(IsRemoteCode(code)) << code;
  }
  EXPECT_FALSE(IsCodeInStore("https://acme.blob.core.windows.net/box/p.git"));
  EXPECT_TRUE(IsRemoteCode("https://acme.blob.core.windows.net/box/p.git"));
}

TEST(CodeInStoreTest, ASignatureIsRefusedAndNotShown) {
  for (const char* code : {"https://acme.blob.core.windows.net/box/a?sv=2022&sig=hunter22",
                           "wasbs://box@acme.blob.core.windows.net/a?sig=hunter22",
                           "azureml://datastores/scripts/paths/a?sv=2022&sig=hunter22",
                           "s3://bucket/a?X-Amz-Signature=hunter22"}) {
    EXPECT_TRUE(IsCodeInStore(code)) << code;
    EXPECT_THAT(
        std::string(CheckCodeInStore(code).message()),
        ::testing::AllOf(::testing::HasSubstr("has a signature"), ::testing::HasSubstr("sas_token"),
                         ::testing::Not(::testing::HasSubstr("hunter22"))))
        << code;
  }
}

TEST(CodeInStoreTest, RefusesPatternsAndWhatNamesNoPlace) {
  for (const char* code :
       {"s3://bucket/a*", "azureml://datastores/scripts/paths/a?.py", "s3://", "s3://bucket/a/../b",
        "https://acme.blob.core.windows.net/", "nfs://server/e/../../x",
        "https://acme.blob.core.windows.net/box/a?comp=list"}) {
    EXPECT_TRUE(IsCodeInStore(code)) << code;
    EXPECT_TRUE(absl::IsInvalidArgument(CheckCodeInStore(code))) << code;
  }
}

}  // namespace
}  // namespace tutti::spec
