#include "spec/data/local_path.h"

#include <gmock/gmock.h>

namespace tutti::spec {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;

std::string PathOf(absl::string_view written) {
  const auto path = LocalPath(written, "/work/job");
  return path.ok() ? *path : absl::StrCat("refused: ", std::string(path.status().message()));
}

TEST(LocalPathTest, RelativePathsCountFromTheFilesFolder) {
  EXPECT_EQ(PathOf("data"), "/work/job/data");
  EXPECT_EQ(PathOf("./data//x/"), "/work/job/data/x");
  EXPECT_EQ(PathOf("../shared"), "/work/shared");
  EXPECT_EQ(PathOf("."), "/work/job");
}

TEST(LocalPathTest, AbsolutePathsAndFileAddressesAreTaken) {
  EXPECT_EQ(PathOf("/data/"), "/data");
  EXPECT_EQ(PathOf("/"), "/");
  EXPECT_EQ(PathOf("file:///data/x"), "/data/x");
  EXPECT_EQ(PathOf("file://localhost/data/x"), "/data/x");
  EXPECT_EQ(PathOf("file:data/x"), "/work/job/data/x");
}

TEST(LocalPathTest, AColonInANameIsNoScheme) {
  EXPECT_EQ(PathOf("a:b"), "/work/job/a:b") << "a scheme has two letters at least";
  EXPECT_EQ(PathOf("data/run:3"), "/work/job/data/run:3");
}

TEST(LocalPathTest, WhatLiesElsewhereIsRefusedAsItWasWritten) {
  EXPECT_EQ(
      PathOf("azureml:mnist:1"),
      "refused: path \"azureml:mnist:1\" is not on this machine; give a local file or folder");
  EXPECT_THAT(PathOf("wasbs://box@account.blob.example/x"), HasSubstr("refused"));
  EXPECT_THAT(PathOf("//server/share"), HasSubstr("refused"));
  EXPECT_THAT(PathOf("file://server/share"), HasSubstr("\"file://server/share\" is not on this"));
}

TEST(LocalPathTest, TheSignatureOfAnAddressIsNotShown) {
  EXPECT_THAT(PathOf("https://account.example/x?sig=secret"), Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace tutti::spec
