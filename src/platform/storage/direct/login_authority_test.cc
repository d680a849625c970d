#include "platform/storage/direct/login_authority.h"

#include <gtest/gtest.h>

namespace tutti::storage {
namespace {

TEST(LoginAuthority, IsWhatIsGivenOrElseOfTheEnvironment) {
  EXPECT_EQ(LoginAuthority("", "").value_or("?"), "");
  EXPECT_EQ(LoginAuthority("https://a.org", "https://b.org").value_or("?"), "https://a.org");
  EXPECT_EQ(LoginAuthority("", "https://login.microsoftonline.us/").value_or("?"),
            "https://login.microsoftonline.us")
      << "as Azure writes it";
  EXPECT_EQ(LoginAuthority("https://a.org:8443/", "").value_or("?"), "https://a.org:8443");
}

TEST(LoginAuthority, TakesNoSecretToAnybodyInClear) {
  EXPECT_TRUE(absl::IsInvalidArgument(LoginAuthority("http://a.org", "").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(LoginAuthority("", "http://a.org").status()));
  EXPECT_EQ(LoginAuthority("http://127.0.0.1:99", "").value_or("?"), "http://127.0.0.1:99");
}

TEST(LoginAuthority, MayHaveAPath) {
  EXPECT_EQ(LoginAuthority("https://a.org:8443/entra/", "").value_or("?"),
            "https://a.org:8443/entra");
}

}  // namespace
}  // namespace tutti::storage
