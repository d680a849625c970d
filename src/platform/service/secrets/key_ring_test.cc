#include "platform/service/secrets/key_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::service {
namespace {

using ::testing::HasSubstr;

class KeyRingTest : public ::testing::Test {
 protected:
  void Write(absl::string_view text, int mode = 0600) {
    ASSERT_TRUE(base::WriteFileAtomic(file_, text, mode).ok());
  }
  const base::TemporaryDirectory folder_;
  const std::filesystem::path file_ = folder_.path() / "secrets.key";
};

TEST_F(KeyRingTest, IsMadeOnceForItsUserAlone) {
  EXPECT_TRUE(absl::IsNotFound(KeyRing::Read(file_).status()));
  const KeyRing made = *KeyRing::Make(file_);
  struct stat info = {};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const SealedValue value = *made.SealValue("hunter22", "token");
  EXPECT_EQ(value.key, made.id());
  EXPECT_EQ(KeyRing::Read(file_)->Open(value, "token").value(), "hunter22");
}

TEST_F(KeyRingTest, OpensUnderFormerKeysAndSealsUnderTheFirst) {
  KeyRing ring = *KeyRing::Make(file_);
  const SealedValue before = *ring.SealValue("one", "a");
  ring.AddNewKey();
  const SealedValue after = *ring.SealValue("two", "a");
  EXPECT_NE(after.key, before.key);
  ASSERT_TRUE(ring.Write(file_).ok());
  KeyRing again = *KeyRing::Read(file_);
  EXPECT_EQ(again.Open(before, "a").value(), "one");
  EXPECT_EQ(again.Open(after, "a").value(), "two");
  again.DropFormerKeys();
  EXPECT_EQ(again.Open(after, "a").value(), "two");
  EXPECT_EQ(again.Open(before, "a").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(KeyRingTest, OpensAValueUnderItsOwnNameAlone) {
  const KeyRing ring = *KeyRing::Make(file_);
  const SealedValue value = *ring.SealValue("one", "a");
  EXPECT_EQ(ring.Open(value, "b").status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(KeyRingTest, SaysWhatIsWrongWithTheFile) {
  const std::string key(64, 'a');
  Write(absl::StrCat("\n  ", key, " \n", std::string(64, 'B'), "\n"));
  EXPECT_TRUE(KeyRing::Read(file_).ok());
  for (const char* none : {"", "\n", "abc\n", "0x"}) {
    Write(none);
    EXPECT_EQ(KeyRing::Read(file_).status().code(), absl::StatusCode::kFailedPrecondition) << none;
    EXPECT_THAT(std::string(KeyRing::Read(file_).status().message()), HasSubstr(file_.native()));
  }
}

TEST_F(KeyRingTest, IsRefusedIfItsGroupOrOthersMayReadIt) {
  const std::string key(64, 'a');
  const auto why = [&](int mode) {
    Write(absl::StrCat(key, "\n"), mode);
    return std::string(KeyRing::Read(file_).status().message());
  };
  EXPECT_EQ(why(0600), "");
  EXPECT_EQ(why(0400), "");
  EXPECT_THAT(why(0644), HasSubstr("is open to all users: chmod 600"));
  EXPECT_THAT(why(0640), HasSubstr("is open to its group: chmod 600"));
  // The group of systemd's credentials is a mask of their access list.
  ::setenv("CREDENTIALS_DIRECTORY", folder_.path().c_str(), 1);
  EXPECT_EQ(why(0440), "");
  EXPECT_THAT(why(0444), HasSubstr("is open to all users"));
  ::unsetenv("CREDENTIALS_DIRECTORY");
}

}  // namespace
}  // namespace tutti::service
