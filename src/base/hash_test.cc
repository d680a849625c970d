#include "base/hash.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace tutti::base {
namespace {

TEST(Hash, AgreesWithThePublishedVectors) {
  EXPECT_EQ(Hex(Sha256Of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // RFC 4231, test case 2.
  EXPECT_EQ(Hex(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Hash, OfAFileIsTheHashOfItsContent) {
  TemporaryDirectory directory;
  const std::string content(3'000'000, 'q');
  ASSERT_TRUE(WriteFileAtomic(directory.path() / "f", content).ok());
  EXPECT_EQ(*Sha256OfFile(directory.path() / "f"), Sha256Of(content));
}

TEST(Hash, RandomBytesDiffer) {
  EXPECT_EQ(RandomHex(16).size(), 32u);
  EXPECT_NE(RandomHex(16), RandomHex(16));
}

TEST(Hash, ComparesLengthAndContent) {
  EXPECT_TRUE(EqualInConstantTime("ab", "ab"));
  EXPECT_FALSE(EqualInConstantTime("ab", "ac"));
  EXPECT_FALSE(EqualInConstantTime("ab", "abc"));
}

}  // namespace
}  // namespace tutti::base
