#include "platform/storage/arrow/arrow_options.h"

#include <gtest/gtest.h>

namespace tutti::storage {
namespace {

spec::DataPlace Azure(const std::string& endpoint) {
  return {spec::StoreKind::kAzureBlob, "acme", "c", endpoint};
}

TEST(AzureOptionsOf, KnowsTheFormsOfAnEndpoint) {
  const auto own = AzureOptionsOf(Azure(""), {});
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->AccountBlobUrl("acme"), "https://acme.blob.core.windows.net/");
  const auto cloud = AzureOptionsOf(Azure("core.chinacloudapi.cn"), {});
  EXPECT_EQ(cloud->AccountBlobUrl("acme"), "https://acme.blob.core.chinacloudapi.cn/");
  EXPECT_EQ(cloud->AccountDfsUrl("acme"), "https://acme.dfs.core.chinacloudapi.cn/");
  const auto host = AzureOptionsOf(Azure("https://acme.dfs.core.windows.net"), {});
  EXPECT_EQ(host->AccountBlobUrl("acme"), "https://acme.blob.core.windows.net/");
  const auto local = AzureOptionsOf(Azure("http://127.0.0.1:10000/acme"), {});
  EXPECT_EQ(local->AccountBlobUrl("acme"), "http://127.0.0.1:10000/acme/");
}

TEST(AzureOptionsOf, RefusesWhatIsNone) {
  EXPECT_TRUE(absl::IsInvalidArgument(AzureOptionsOf(Azure("http://h/other"), {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(AzureOptionsOf(Azure("http://h/?x"), {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      AzureOptionsOf(Azure(""), {spec::CredentialKind::kAccessKey}).status()));
}

TEST(AzureOptionsOf, PutsAQuestionMarkBeforeASas) {
  Credentials credentials{spec::CredentialKind::kSas};
  credentials.sas = "sv=1&sig=2";
  EXPECT_EQ(AzureOptionsOf(Azure(""), credentials)->SasToken(), "?sv=1&sig=2");
  credentials.sas = "?sv=1&sig=2";
  EXPECT_EQ(AzureOptionsOf(Azure(""), credentials)->SasToken(), "?sv=1&sig=2");
}

TEST(S3OptionsOf, TakesServerAndKey) {
  Credentials credentials{spec::CredentialKind::kAccessKey};
  credentials.access_key_id = "id";
  credentials.secret_access_key = "secret";
  credentials.session_token = "token";
  const auto options =
      S3OptionsOf({spec::StoreKind::kS3, "", "b", "http://127.0.0.1:9000"}, credentials);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->endpoint_override, "127.0.0.1:9000");
  EXPECT_EQ(options->scheme, "http");
  EXPECT_EQ(options->region, "us-east-1");
  EXPECT_EQ(options->GetSecretKey(), "secret");
  EXPECT_EQ(options->GetSessionToken(), "token");
  EXPECT_TRUE(absl::IsInvalidArgument(
      S3OptionsOf({spec::StoreKind::kS3, "", "b", "ftp://h"}, credentials).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      S3OptionsOf({spec::StoreKind::kS3, "", "b"}, {spec::CredentialKind::kSas}).status()));
}

TEST(GcsOptionsOf, TakesNoCredentials) {
  EXPECT_TRUE(GcsOptionsOf({spec::StoreKind::kGcs, "", "b"}, {}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      GcsOptionsOf({spec::StoreKind::kGcs, "", "b"}, {spec::CredentialKind::kAccessKey}).status()));
}

}  // namespace
}  // namespace tutti::storage
