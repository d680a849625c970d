#include "http/url.h"

#include <gtest/gtest.h>

#include "base/text/percent_encode.h"

namespace tutti::http {
namespace {

TEST(Url, EncodesAndDecodesEveryByteButNul) {
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(*PercentDecode(base::PercentEncode(all)), all);
  for (const char* broken : {"%", "%1", "%zz", "a%0", "%00"}) {
    EXPECT_FALSE(PercentDecode(broken).ok()) << broken;
  }
}

TEST(Url, ReadsTheFormsOfABaseUrl) {
  EXPECT_EQ(ParseBaseUrl("http://127.0.0.1:6280/")->port, 6280);
  EXPECT_EQ(ParseBaseUrl("host:99")->host, "host");
  EXPECT_EQ(ParseBaseUrl("http://host")->port, 80);
  EXPECT_EQ(ParseBaseUrl("[::1]:5")->host, "::1");
  for (const char* wrong : {"", "http://", "host:0", "host:x", "host:70000", "https://", "a/b"}) {
    EXPECT_FALSE(ParseBaseUrl(wrong).ok()) << wrong;
  }
}

TEST(Url, KeepsEachValueOfARepeatedKeyInItsOrder) {
  const auto target = ParseTarget("/a?run=2&x=&run=1&run=2");
  ASSERT_TRUE(target.ok()) << target.status();
  std::vector<std::string> runs;
  const auto [first, end] = target->query.equal_range("run");
  for (auto value = first; value != end; ++value) runs.push_back(value->second);
  EXPECT_EQ(runs, (std::vector<std::string>{"2", "1", "2"}));
  EXPECT_EQ(target->query.count("x"), 1u);
}

}  // namespace
}  // namespace tutti::http
