#include "platform/storage/arrow/arrow_options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "absl/strings/str_cat.h"

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

// "HOST:PORT" of the proxy; "": none.
std::string ProxyOf(const std::string& endpoint) {
  const auto options = S3OptionsOf({spec::StoreKind::kS3, "", "b", endpoint}, {});
  EXPECT_TRUE(options.ok()) << options.status();
  const auto& proxy = options->proxy_options;
  return proxy.host.empty() ? "" : absl::StrCat(proxy.host, ":", proxy.port);
}

TEST(S3OptionsOf, GoesByTheProxyThatTheEnvironmentNames) {
  const char* const names[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"};
  std::map<std::string, std::string> before;
  for (const char* name : names) {
    if (const char* value = std::getenv(name)) before[name] = value;
    ::unsetenv(name);
  }
  EXPECT_EQ(ProxyOf(""), "");
  ::setenv("https_proxy", "http://proxy.example:3128", 1);
  EXPECT_EQ(ProxyOf(""), "proxy.example:3128");
  EXPECT_EQ(ProxyOf("https://store.lab.example:9000"), "proxy.example:3128");
  EXPECT_EQ(ProxyOf("http://store.lab.example:9000"), "") << "that is another variable's";
  ::setenv("no_proxy", "localhost, .lab.example", 1);
  EXPECT_EQ(ProxyOf("https://store.lab.example:9000"), "");
  EXPECT_EQ(ProxyOf("https://storelab.example"), "proxy.example:3128");
  ::setenv("http_proxy", "other.example:80", 1);
  EXPECT_EQ(ProxyOf("http://store.example"), "other.example:80");
  ::setenv("no_proxy", "*", 1);
  EXPECT_EQ(ProxyOf("http://store.example"), "");
  for (const char* name : names) ::unsetenv(name);
  for (const auto& [name, value] : before) ::setenv(name.c_str(), value.c_str(), 1);
}

TEST(GcsAsS3, IsTheSameBucketByGooglesOtherInterface) {
  const spec::DataPlace place = GcsAsS3({spec::StoreKind::kGcs, "", "maps", "", "", "a/b"});
  EXPECT_EQ(place.kind, spec::StoreKind::kS3);
  EXPECT_EQ(place.container, "maps");
  EXPECT_EQ(place.endpoint, "https://storage.googleapis.com");
  EXPECT_EQ(place.region, "auto");
  EXPECT_EQ(place.path, "a/b");
  EXPECT_EQ(GcsAsS3({spec::StoreKind::kGcs, "", "maps", "http://127.0.0.1:1"}).endpoint,
            "http://127.0.0.1:1");
}

TEST(GcsOptionsOf, TakesNoCredentials) {
  EXPECT_TRUE(GcsOptionsOf({spec::StoreKind::kGcs, "", "b"}, {}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      GcsOptionsOf({spec::StoreKind::kGcs, "", "b"}, {spec::CredentialKind::kAccessKey}).status()));
}

}  // namespace
}  // namespace tutti::storage
