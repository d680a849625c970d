#include "spec/types/identifier.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti::spec {
namespace {

TEST(Identifier, IsWhatAVariableMayBeCalled) {
  for (const char* name : {"a", "_", "lr_0", "Data"}) EXPECT_TRUE(IsIdentifier(name)) << name;
  for (const char* name : {"", "0a", "a-b", "a b", "a/b", "a.b", "\xc3\xa4"}) {
    EXPECT_FALSE(IsIdentifier(name)) << name;
  }
}

TEST(Identifier, AJobsNameMayHaveAMinusAndBeginWithADigit) {
  for (const char* name : {"a", "3d", "cifar-1", "a_b"}) EXPECT_TRUE(IsJobName(name)) << name;
  for (const char* name : {"", "-a", "_a", "..", "a/b", "a b"})
    EXPECT_FALSE(IsJobName(name)) << name;
}

TEST(Identifier, NeitherIsLongerThanAFoldersNameMayBe) {
  EXPECT_TRUE(IsIdentifier(std::string(128, 'a')));
  EXPECT_FALSE(IsIdentifier(std::string(129, 'a')));
  EXPECT_TRUE(IsJobName(std::string(128, 'a')));
  EXPECT_FALSE(IsJobName(std::string(129, 'a')));
  EXPECT_TRUE(IsSecretName("hugging-face_2"));
  EXPECT_FALSE(IsSecretName("../key"));
}

}  // namespace
}  // namespace tutti::spec
