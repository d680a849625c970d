#include "platform/client/connection/find_service.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/file.h"
#include "platform/client/connection/outage.h"

namespace tutti::client {
namespace {

class EndpointTest : public testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("TUTTI_ADDRESS");
    ::unsetenv("TUTTI_TOKEN");
    ::unsetenv("TUTTI_CERTIFICATE");
  }
  void TearDown() override { SetUp(); }
  base::TemporaryDirectory home_;
};

TEST_F(EndpointTest, IsWhatTheServiceWrote) {
  ASSERT_TRUE(base::WriteFileAtomic(home_.path() / "service.json",
                                    R"({"address": "http://127.0.0.1:7300", "token": "t"})")
                  .ok());
  const auto endpoint = FindService(home_.path());
  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(endpoint->address, "http://127.0.0.1:7300");
  EXPECT_EQ(endpoint->token, "t");
}

TEST_F(EndpointTest, TheEnvironmentWins) {
  ASSERT_TRUE(base::WriteFileAtomic(home_.path() / "service.json",
                                    R"({"address": "http://127.0.0.1:7300", "token": "t"})")
                  .ok());
  ::setenv("TUTTI_ADDRESS", "http://other:1", 1);
  ::setenv("TUTTI_TOKEN", "u", 1);
  EXPECT_EQ(FindService(home_.path())->address, "http://other:1");
  EXPECT_EQ(FindService(home_.path())->token, "u");
}

TEST_F(EndpointTest, TheTokenOfAHomeGoesToNoOtherAddress) {
  ASSERT_TRUE(base::WriteFileAtomic(home_.path() / "service.json",
                                    R"({"address": "http://127.0.0.1:7300", "token": "t"})")
                  .ok());
  for (const char* address : {"http://other:1", "https://other:1", "http://127.0.0.1:7301"}) {
    ::setenv("TUTTI_ADDRESS", address, 1);
    const absl::Status refused = FindService(home_.path()).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << address;
    EXPECT_NE(refused.message().find("set TUTTI_TOKEN"), absl::string_view::npos);
  }
  ::setenv("TUTTI_ADDRESS", "http://127.0.0.1:7300", 1);
  EXPECT_EQ(FindService(home_.path())->token, "t");
}

TEST_F(EndpointTest, ACertificateIsOfOneAddress) {
  ASSERT_TRUE(base::WriteFileAtomic(
                  home_.path() / "service.json",
                  R"({"address": "https://10.1.0.1:1", "token": "t", "certificate": "own"})")
                  .ok());
  EXPECT_EQ(FindService(home_.path())->certificate, "own");
  ::setenv("TUTTI_TOKEN", "u", 1);
  ::setenv("TUTTI_ADDRESS", "https://10.1.0.1:1", 1);
  EXPECT_EQ(FindService(home_.path())->certificate, "own");
  ::setenv("TUTTI_ADDRESS", "https://10.1.0.2:1", 1);
  EXPECT_EQ(FindService(home_.path())->certificate, "");
  ::unsetenv("TUTTI_TOKEN");  // the file's token is for the file's service
  EXPECT_EQ(FindService(home_.path())->certificate, "own");
  for (const char* plain : {"http://10.1.0.1:1", "10.1.0.1:1"}) {
    ::setenv("TUTTI_ADDRESS", plain, 1);
    const auto refused = FindService(home_.path());
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << plain;
  }
  ::setenv("TUTTI_ADDRESS", "https://10.1.0.2:1", 1);
  const std::filesystem::path file = home_.path() / "certificate.pem";
  ::setenv("TUTTI_CERTIFICATE", file.c_str(), 1);
  EXPECT_TRUE(absl::IsInvalidArgument(FindService(home_.path()).status()));
  ASSERT_TRUE(base::WriteFileAtomic(file, "other").ok());
  EXPECT_EQ(FindService(home_.path())->certificate, "other");
  ::setenv("TUTTI_ADDRESS", "https://10.1.0.1:1", 1);
  EXPECT_EQ(FindService(home_.path())->certificate, "other");
}

TEST_F(EndpointTest, SaysHowToStartAServiceWhenThereIsNone) {
  const absl::Status status = FindService(home_.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("tutti serve"), absl::string_view::npos);
}

TEST_F(EndpointTest, AHomeThatHadAServiceMayHaveOneAgain) {
  EXPECT_TRUE(WasNeverThere(FindService(home_.path()).status()));
  ASSERT_TRUE(base::WriteFileAtomic(home_.path() / "tutti.db", "").ok());
  const absl::Status away = FindService(home_.path()).status();
  EXPECT_TRUE(absl::IsUnavailable(away) && !WasNeverThere(away)) << away;
}

TEST_F(EndpointTest, ADamagedFileIsNoService) {
  for (const char* text : {"", "[]", "{\"address\": 5}", "{"}) {
    ASSERT_TRUE(base::WriteFileAtomic(home_.path() / "service.json", text).ok());
    EXPECT_EQ(FindService(home_.path()).status().code(), absl::StatusCode::kUnavailable) << text;
  }
}

TEST_F(EndpointTest, TheFlagNamesTheHome) {
  EXPECT_EQ(HomeFolder("/a/../b"), "/b");
  ::setenv("TUTTI_HOME", "/c", 1);
  EXPECT_EQ(HomeFolder(""), "/c");
  ::unsetenv("TUTTI_HOME");
}

}  // namespace
}  // namespace tutti::client
