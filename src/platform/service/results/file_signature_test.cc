#include "platform/service/results/file_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::service {
namespace {

const SignedFile kFile = {"ant", 3, "outputs/a", 17};

TEST(FileSignature, IsOfOneFileOfOneJobOneEndAndOneKey) {
  const std::string signature = FileSignature("key", kFile);
  EXPECT_EQ(signature.size(), 64u);
  EXPECT_TRUE(IsSigned("key", kFile, signature));
  EXPECT_FALSE(IsSigned("key", {"ant", 3, "outputs/a", 18}, signature));
  EXPECT_FALSE(IsSigned("key", {"ant", 3, "outputs/b", 17}, signature));
  EXPECT_FALSE(IsSigned("key", {"bee", 3, "outputs/a", 17}, signature));
  EXPECT_FALSE(IsSigned("key", {"ant", 4, "outputs/a", 17}, signature)) << "the name anew";
  EXPECT_FALSE(IsSigned("other", kFile, signature));
  EXPECT_FALSE(IsSigned("key", kFile, ""));
}

TEST(FileSignature, WithoutAKeyNothingIsSigned) {
  EXPECT_EQ(FileSignature("", kFile), "");
  EXPECT_FALSE(IsSigned("", kFile, ""));
}

TEST(SignedFileTarget, IsWrittenAsAnAddress) {
  EXPECT_THAT(SignedFileTarget("key", {"ant", 3, "outputs/a b", 17}),
              ::testing::StartsWith(
                  "/v1/signed-files/ant/outputs/a%20b?expires=17&submission=3&signature="));
}

}  // namespace
}  // namespace tutti::service
