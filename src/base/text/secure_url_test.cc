#include "base/text/secure_url.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti::base {
namespace {

TEST(SecureUrl, IsAHostByHttpsWhichMayHaveAPortAndAPath) {
  for (const char* url :
       {"https://a.org", "https://a.org:8443", "https://a.org/entra", "https://a.org:1/a/b-c_d.e~f",
        "https://[fd00::1]:8443/x", "https://127.0.0.1"}) {
    EXPECT_TRUE(IsSecureUrl(url)) << url;
  }
}

TEST(SecureUrl, NeedsNoHttpsOnThisMachine) {
  for (const char* url : {"http://127.0.0.1:99", "http://127.0.0.1", "http://localhost:99",
                          "http://localhost/x", "http://[::1]:99", "http://[::1]"}) {
    EXPECT_TRUE(IsSecureUrl(url)) << url;
  }
}

TEST(SecureUrl, SendsNoSecretElsewhereOrInClear) {
  for (const char* url :
       {"", "http://a.org", "a.org", "https://", "https:///", "https:///x", "https://u@a.org",
        "https://a.org?x", "http://127.0.0.1.a.org", "http://127.0.0.1:1@a.org",
        "http://localhost.a.org", "http://a.org/localhost", "http://localhost:1@a.org",
        "https://:8443", "https://a.org:", "https://a.org:x", "https://a.org:99999",
        "https://[]"}) {
    EXPECT_FALSE(IsSecureUrl(url)) << url;
  }
}

TEST(SecureUrl, HasAPathThatIsTakenAsItStands) {
  for (const char* path : {"/", "/../x", "/a/..", "/./x", "//x", "/x//y", "/x/", "/a b", "/a%2fb",
                           "/a\\b", "/a\tb", "/a\nb", "/a?b", "/a#b", "/a@b", "/\x7f"}) {
    EXPECT_FALSE(IsSecureUrl(std::string("https://a.org") + path)) << path;
  }
}

}  // namespace
}  // namespace tutti::base
