#include "platform/stream/stream_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::stream {
namespace {

using spec::CredentialKind;
using spec::StoreKind;
using ::testing::HasSubstr;

storage::StorageRequest Request(absl::string_view address, const Environment& environment = {}) {
  const auto request = RequestOfAddress(address, environment);
  EXPECT_TRUE(request.ok()) << request.status();
  return request.value_or(storage::StorageRequest());
}

TEST(StreamRequest, TakesServerAndKeysOfS3FromTheVariablesThatItsToolsRead) {
  const auto open = Request("s3://sets/train/images");
  EXPECT_EQ(open.place.container, "sets");
  EXPECT_EQ(open.place.path, "train/images");
  EXPECT_EQ(open.credentials.kind, CredentialKind::kNone);
  const auto own = Request("s3://sets", {{"AWS_ACCESS_KEY_ID", "id"},
                                         {"AWS_SECRET_ACCESS_KEY", "secret"},
                                         {"AWS_ENDPOINT_URL", "http://127.0.0.1:9000/"},
                                         {"AWS_DEFAULT_REGION", "eu-west-1"}});
  EXPECT_EQ(own.credentials.kind, CredentialKind::kAccessKey);
  EXPECT_EQ(own.credentials.secret_access_key, "secret");
  EXPECT_EQ(own.place.endpoint, "http://127.0.0.1:9000");
  EXPECT_EQ(own.place.region, "eu-west-1");
}

TEST(StreamRequest, TakesGooglesKeysFromTheirVariables) {
  EXPECT_EQ(Request("gs://sets/train").credentials.kind, CredentialKind::kNone);
  const auto own = Request("gs://sets/train", {{"GS_ACCESS_KEY_ID", "GOOG1"},
                                               {"GS_SECRET_ACCESS_KEY", "secret"},
                                               {"AWS_ACCESS_KEY_ID", "id"}});
  EXPECT_EQ(own.place.kind, StoreKind::kGcs);
  EXPECT_EQ(own.place.credential, CredentialKind::kAccessKey);
  EXPECT_EQ(own.credentials.access_key_id, "GOOG1");
  EXPECT_EQ(own.credentials.secret_access_key, "secret");
}

TEST(StreamRequest, TakesAzuresKeysTheStrongestFirst) {
  const char* const address = "abfss://c@acme.dfs.core.windows.net/train";
  EXPECT_EQ(Request(address).credentials.kind, CredentialKind::kNone);
  Environment environment = {
      {"AZURE_TENANT_ID", "t"}, {"AZURE_CLIENT_ID", "c"}, {"AZURE_CLIENT_SECRET", "s"}};
  EXPECT_EQ(Request(address, environment).credentials.kind, CredentialKind::kServicePrincipal);
  environment["AZURE_STORAGE_SAS_TOKEN"] = "sig=1";
  EXPECT_EQ(Request(address, environment).credentials.kind, CredentialKind::kSas);
  environment["AZURE_STORAGE_KEY"] = "a2V5";
  EXPECT_EQ(Request(address, environment).credentials.kind, CredentialKind::kAccountKey);
}

TEST(StreamRequest, AFolderOfThisMachineIsAPlaceToo) {
  const auto local = Request("file:///data/set/");
  EXPECT_EQ(local.place.kind, StoreKind::kLocal);
  EXPECT_EQ(local.place.path, "/data/set");
}

TEST(StreamRequest, WhatIsNoAddressOfAStoreIsNamedWithWhatToWrite) {
  for (const auto& [address, why] :
       {std::pair("azureml://datastores/sets/paths/train", "input of a job with mode: direct"),
        {"ftp://host/x", "is no address of a store"},
        {"https://acme.blob.core.windows.net/c/x?sig=secret", "without a signature"},
        {"s3:///x", ""}}) {
    const auto request = RequestOfAddress(address, {});
    EXPECT_TRUE(absl::IsInvalidArgument(request.status())) << address;
    EXPECT_THAT(std::string(request.status().message()), HasSubstr(why));
    EXPECT_THAT(std::string(request.status().message()), ::testing::Not(HasSubstr("secret")));
  }
}

TEST(StreamRequest, TheCommandLineSaysWhereToServeWhat) {
  const auto asked = ParseStreamRequest(
      {"s3://sets/train", "--socket", "/run/s", "--cache", "/data", "--most-bytes", "1000"});
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(asked->address, "s3://sets/train");
  EXPECT_EQ(asked->socket, "/run/s");
  EXPECT_EQ(asked->cache, "/data");
  EXPECT_EQ(asked->most_bytes, 1000u);
  EXPECT_EQ(asked->nodes, 1u);
  const auto shared = ParseStreamRequest({"-", "--socket", "/run/s", "--cache", "/data", "--node",
                                          "n1", "--nodes", "4", "--list", "/l"});
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_EQ(shared->node, "n1");
  EXPECT_EQ(shared->nodes, 4u);
  EXPECT_EQ(shared->list, "/l");
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {"s3://x"},
           {"s3://x", "--socket", "/s", "--cache", "relative"},
           {"s3://x", "--socket"},
           {"s3://x", "--socket", "/s", "--cache", "/d", "--most-bytes", "many"},
           {"s3://x", "--socket", "/s", "--cache", "/d", "--node", "n", "--nodes", "0"},
           {"--socket", "/s", "--cache", "/d"},
           {"s3://x", "--socket", "/s", "--cache", "/d", "--speed", "1"}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseStreamRequest(wrong).status()));
  }
}

}  // namespace
}  // namespace tutti::stream
