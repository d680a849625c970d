#include "base/seal.h"

#include <gtest/gtest.h>

#include <string>

#include "base/hash.h"

namespace tutti::base {
namespace {

TEST(SealTest, GivesBackWhatWasSealed) {
  const std::string key = RandomBytes(kSealKeyBytes);
  for (const size_t size : {0, 1, 16, 65536}) {
    const std::string text = RandomBytes(size);
    EXPECT_EQ(Unseal(key, *Seal(key, text, "its name"), "its name").value(), text) << size;
  }
}

TEST(SealTest, IsAnotherEachTimeAndHasNoPartOfTheText) {
  const std::string key = RandomBytes(kSealKeyBytes);
  const std::string text = "a secret of some length";
  const std::string sealed = *Seal(key, text, "");
  EXPECT_NE(sealed, *Seal(key, text, ""));
  EXPECT_EQ(sealed.find("secret"), std::string::npos);
}

TEST(SealTest, RefusesAnotherKeyAnotherOwnerAndEveryChange) {
  const std::string key = RandomBytes(kSealKeyBytes);
  const std::string sealed = *Seal(key, "text", "name");
  EXPECT_EQ(Unseal(RandomBytes(kSealKeyBytes), sealed, "name").status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(Unseal(key, sealed, "other").status().code(), absl::StatusCode::kDataLoss);
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(Unseal(key, changed, "name").ok()) << i;
    EXPECT_FALSE(Unseal(key, sealed.substr(0, i), "name").ok()) << i;
  }
  EXPECT_TRUE(Unseal(key, sealed, "name").ok());
}

TEST(SealTest, TakesKeysOf32BytesAlone) {
  EXPECT_EQ(Seal("short", "text", "").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Unseal("short", "text", "").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tutti::base
