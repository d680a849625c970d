#include "http/socket_name.h"

#include <gtest/gtest.h>

namespace tutti::http {
namespace {

TEST(SocketName, IsReadAndWrittenOfBothFamilies) {
  for (const char* text : {"127.0.0.1:6280", "[::1]:6281", "[2001:db8::7]:0"}) {
    const auto name = SocketNameOf(text);
    ASSERT_TRUE(name) << text;
    EXPECT_EQ(TextOf(*name), text);
  }
  EXPECT_EQ(AddressOf(*SocketNameOf("::1", 80)), "::1");
  EXPECT_EQ(PortOf(*SocketNameOf("::1", 80)), 80);
  EXPECT_EQ(PortOf(*SocketNameOf("10.0.0.1", 65535)), 65535);
}

TEST(SocketName, NothingElseIsOne) {
  for (const char* text : {"", ":80", "127.0.0.1", "localhost:80", "::1:80", "[::1]",
                           "[127.0.0.1]:8", "127.0.0.1:", "127.0.0.1:a"}) {
    EXPECT_FALSE(SocketNameOf(text)) << text;
  }
}

TEST(SocketName, OnlyOwnAddressesAreOfThisMachine) {
  EXPECT_TRUE(IsOfThisMachine("127.0.0.1"));
  EXPECT_TRUE(IsOfThisMachine("127.8.9.1"));
  EXPECT_FALSE(IsOfThisMachine("203.0.113.7"));
  EXPECT_FALSE(IsOfThisMachine("2001:db8::7"));
  EXPECT_FALSE(IsOfThisMachine("host"));
}

}  // namespace
}  // namespace tutti::http
