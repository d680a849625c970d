#include "spec/types/service_endpoint.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace tutti::spec {
namespace {

TEST(Endpoint, IsReadAsItWasWritten) {
  const Endpoint written{"https://10.1.0.1:6280", "t", "-----BEGIN\nx\n-----END\n"};
  const std::string text = ToJson(written);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto read = ParseEndpoint(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->address, written.address);
  EXPECT_EQ(read->token, written.token);
  EXPECT_EQ(read->certificate, written.certificate);
}

TEST(Endpoint, LacksWhatIsNotThere) {
  EXPECT_EQ(ToJson({.address = "http://a:1"}), R"({"address":"http://a:1"})");
  const auto read = ParseEndpoint(R"({"address": "http://a:1", "token": 5})");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->token + read->certificate, "");
}

TEST(Endpoint, NeedsAnAddress) {
  for (const char* text : {"", "[]", "{", R"({"address": 5})", R"({"address": ""})"}) {
    EXPECT_EQ(ParseEndpoint(text).status().code(), absl::StatusCode::kDataLoss) << text;
  }
  base::TemporaryDirectory folder;
  const auto file = folder.path() / "launcher.json";
  EXPECT_TRUE(absl::IsNotFound(ReadEndpoint(file).status()));
  ASSERT_TRUE(base::WriteFileAtomic(file, "{}").ok());
  EXPECT_NE(ReadEndpoint(file).status().message().find("launcher.json"), std::string::npos);
}

TEST(Endpoint, TellsWhatOtherMachinesCannotReach) {
  EXPECT_TRUE(IsOfThisMachineOnly("http://127.0.0.1:6280"));
  EXPECT_TRUE(IsOfThisMachineOnly("https://localhost:6280"));
  EXPECT_FALSE(IsOfThisMachineOnly("https://10.1.0.1:6280"));
}

}  // namespace
}  // namespace tutti::spec
