// Covers: object_url.cc, azure_sas.cc, aws_signature.cc, session_request.cc, limited_access.cc. The
// stores' stand-ins check the signatures in tests/storage/test_storage_command.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/storage/signing/aws_signature.h"
#include "platform/storage/signing/azure_sas.h"
#include "platform/storage/signing/limited_access.h"
#include "platform/storage/signing/object_url.h"
#include "platform/storage/signing/session_request.h"

namespace tutti::storage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kKey[] = "aHVudGVyMjI=";

spec::DataPlace Place(spec::StoreKind kind, const std::string& path) {
  const bool is_s3 = kind == spec::StoreKind::kS3;
  return {.kind = kind,
          .account = is_s3 ? "" : "acme",
          .container = "images",
          .region = is_s3 ? "us-east-1" : "",
          .path = path};
}

Credentials ExampleKey() {
  Credentials key{spec::CredentialKind::kAccessKey};
  key.access_key_id = "AKIAIOSFODNN7EXAMPLE";
  key.secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
  return key;
}

std::string UrlText(const spec::DataPlace& place) {
  const auto url = UrlOf(place);
  return url.ok() ? url->WithQuery("") : std::string(url.status().message());
}

TEST(UrlOf, WritesAddressesOfEachStore) {
  spec::DataPlace blob = Place(spec::StoreKind::kAzureBlob, "a b/c");
  EXPECT_EQ(UrlText(blob), "https://acme.blob.core.windows.net/images/a%20b/c");
  blob.endpoint = "core.chinacloudapi.cn";
  EXPECT_EQ(UrlText(blob), "https://acme.blob.core.chinacloudapi.cn/images/a%20b/c");
  blob.endpoint = "https://acme.dfs.core.windows.net";
  EXPECT_EQ(UrlText(blob), "https://acme.blob.core.windows.net/images/a%20b/c");
  blob.endpoint = "http://127.0.0.1:10000/acme";
  EXPECT_EQ(UrlText(blob), "http://127.0.0.1:10000/acme/images/a%20b/c");
  blob.endpoint = "http://127.0.0.1:10000";
  EXPECT_EQ(UrlText(blob), "http://127.0.0.1:10000/acme/images/a%20b/c");
  spec::DataPlace bucket = Place(spec::StoreKind::kS3, "x");
  EXPECT_EQ(UrlText(bucket), "https://images.s3.us-east-1.amazonaws.com/x");
  bucket.container = "a.b";
  EXPECT_EQ(UrlText(bucket), "https://s3.us-east-1.amazonaws.com/a.b/x");
  bucket.region = "";
  EXPECT_THAT(UrlText(bucket), HasSubstr("region"));
  bucket.endpoint = "https://minio.example.org";
  EXPECT_EQ(UrlText(bucket), "https://minio.example.org/a.b/x");
  EXPECT_THAT(UrlText(Place(spec::StoreKind::kLocal, "/x")), HasSubstr("folder of this machine"));
  blob.is_pattern = true;
  EXPECT_THAT(UrlText(blob), HasSubstr("pattern"));
}

// The example of AWS's own documentation, "Authenticating Requests: Using Query Parameters".
TEST(PresignedUrl, IsThatOfTheDocumentation) {
  const AwsScope scope{"us-east-1", "s3",
                       absl::FromCivil(absl::CivilDay(2013, 5, 24), absl::UTCTimeZone())};
  const ObjectUrl url{"https", "examplebucket.s3.amazonaws.com", "/test.txt"};
  EXPECT_EQ(PresignedUrl("GET", url, ExampleKey(), scope, absl::Hours(24)),
            "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&"
            "X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&"
            "X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&"
            "X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

// The same, "Authenticating Requests: Using the Authorization Header", a GET of a range.
TEST(SignedHeaders, AreThoseOfTheDocumentation) {
  const AwsScope scope{"us-east-1", "s3",
                       absl::FromCivil(absl::CivilDay(2013, 5, 24), absl::UTCTimeZone())};
  const ObjectUrl url{"https", "examplebucket.s3.amazonaws.com", "/test.txt"};
  const Headers headers = SignedHeaders("GET", url, {{"range", "bytes=0-9"}}, ExampleKey(), scope);
  EXPECT_THAT(headers, testing::Contains(testing::Pair("range", "bytes=0-9")));
  ASSERT_EQ(headers.back().first, "Authorization");
  EXPECT_EQ(headers.back().second,
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(AzureSas, SaysWhatItIsForAndEndsByItself) {
  const absl::Time end = absl::FromUnixSeconds(1700000000);
  const spec::DataPlace place = Place(spec::StoreKind::kAzureBlob, "a/b");
  const auto reading = AzureSas(place, kKey, {.expires = end});
  ASSERT_TRUE(reading.ok()) << reading.status();
  EXPECT_THAT(*reading,
              StartsWith("sv=2021-08-06&sr=c&sp=rl&se=2023-11-14T22%3A13%3A20Z&spr=https&sig="));
  EXPECT_THAT(*AzureSas(place, kKey, {.write = true, .expires = end}), HasSubstr("&sp=racwdl&"));
  EXPECT_THAT(*AzureSas(place, kKey, {.one_object = true, .expires = end}),
              HasSubstr("&sr=b&sp=r&"));
  EXPECT_THAT(*AzureSas(place, kKey, {.write = true, .one_object = true, .expires = end}),
              HasSubstr("&sr=b&sp=cw&"));
  EXPECT_NE(*reading, *AzureSas(place, kKey, {.expires = end + absl::Seconds(1)}));
  EXPECT_THAT(AzureSas(place, "%", {.expires = end}).status().message(), HasSubstr("base64"));
  EXPECT_FALSE(AzureSas(Place(spec::StoreKind::kS3, ""), kKey, {.expires = end}).ok());
}

// Azure's own libraries for Python (azure-storage-blob 12, azure-storage-file-share 12), set to the
// same version of the service, make these signatures.
TEST(AzureSas, SignsAsAzuresLibrariesDo) {
  const absl::Time end = absl::FromUnixSeconds(1700000000);
  const auto signature = [&](spec::StoreKind kind, bool of_one) {
    const auto sas = AzureSas(Place(kind, "a/b"), kKey, {.one_object = of_one, .expires = end});
    return sas.ok() ? sas->substr(sas->find("&sig=")) : std::string(sas.status().message());
  };
  EXPECT_EQ(signature(spec::StoreKind::kAzureBlob, false),
            "&sig=u%2BA5zn4S7UGSU2iAX89GOGmiizTRYXxyc8HtxezBDi4%3D");
  EXPECT_EQ(signature(spec::StoreKind::kAzureBlob, true),
            "&sig=ZaJqlhkgSmtdFl3SwCYfA3KCkflrwObrjgNl2qHIbC4%3D");
  EXPECT_EQ(signature(spec::StoreKind::kAzureFile, false),
            "&sig=EGFZXj1nxEOr7fM5%2BGfEwYinPjtXz4ie8OXsPAgrwRE%3D");
  EXPECT_EQ(signature(spec::StoreKind::kAzureFile, true),
            "&sig=TJm2TTwPdl5ZV0JqKhYGKVRVOoeGClLPcBk5dla8yX4%3D");
}

TEST(AzureSas, IsOfASharesFilesToo) {
  const absl::Time end = absl::FromUnixSeconds(1700000000);
  const spec::DataPlace place = Place(spec::StoreKind::kAzureFile, "a/b");
  EXPECT_THAT(*AzureSas(place, kKey, {.expires = end}),
              StartsWith("sv=2021-08-06&sr=s&sp=rl&se=2023-11-14T22%3A13%3A20Z&spr=https&sig="));
  EXPECT_THAT(*AzureSas(place, kKey, {.write = true, .expires = end}), HasSubstr("&sp=rcwdl&"));
  EXPECT_THAT(*AzureSas(place, kKey, {.write = true, .one_object = true, .expires = end}),
              HasSubstr("&sr=f&sp=cw&"));
}

TEST(SessionRequest, AsksAwsAndOthersForTheBucketAlone) {
  spec::DataPlace place = Place(spec::StoreKind::kS3, "x");
  const auto aws = SessionRequestFor(place, false, absl::Hours(1));
  ASSERT_TRUE(aws.ok()) << aws.status();
  EXPECT_EQ(aws->url.WithQuery(""), "https://sts.us-east-1.amazonaws.com/");
  EXPECT_THAT(aws->form, AllOf(StartsWith("Action=GetFederationToken&"), HasSubstr("images%2F%2A"),
                               HasSubstr("DurationSeconds=3600"), Not(HasSubstr("PutObject"))));
  place.endpoint = "http://127.0.0.1:9000";
  const auto other = SessionRequestFor(place, true, absl::Hours(1));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->url.WithQuery(""), "http://127.0.0.1:9000/");
  EXPECT_THAT(other->form, AllOf(StartsWith("Action=AssumeRole&"), HasSubstr("PutObject")));
}

TEST(SessionFrom, ReadsKeysAndTheStoresWords) {
  const auto session = SessionFrom(
      "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIA</AccessKeyId>"
      "<SecretAccessKey>a/b+c&amp;lt;</SecretAccessKey><SessionToken>\n t== </SessionToken>"
      "</Credentials></AssumeRoleResult></AssumeRoleResponse>");
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->access_key_id, "ASIA");
  EXPECT_EQ(session->secret_access_key, "a/b+c&lt;");
  EXPECT_EQ(session->session_token, "t==");
  const auto refused = SessionFrom("<Error><Code>AccessDenied</Code><Message>no</Message></Error>");
  EXPECT_EQ(refused.status().message(),
            "the store gives no keys for a limited time (AccessDenied: no)");
  EXPECT_FALSE(SessionFrom("").ok());
}

TEST(LimitedCredentials, NeverHoldTheKey) {
  const AccessTerms terms{.now = absl::FromUnixSeconds(1700000000), .lasts = absl::Hours(1)};
  Credentials key{spec::CredentialKind::kAccountKey, kKey};
  const auto limited = LimitedCredentials(Place(spec::StoreKind::kAzureBlob, "a"), key, terms);
  ASSERT_TRUE(limited.ok()) << limited.status();
  EXPECT_EQ((*limited)->kind, spec::CredentialKind::kSas);
  EXPECT_EQ((*limited)->account_key, "");
  EXPECT_THAT((*limited)->sas, HasSubstr("se=2023-11-14T23%3A13%3A20Z"));
  EXPECT_EQ(*LimitedCredentials(Place(spec::StoreKind::kS3, "a"), ExampleKey(), terms),
            std::nullopt);
  EXPECT_THAT(
      LimitedCredentials(Place(spec::StoreKind::kGcs, "a"), ExampleKey(), terms).status().message(),
      HasSubstr("GS_ACCESS_KEY_ID"));
  key.kind = spec::CredentialKind::kServicePrincipal;
  EXPECT_THAT(
      LimitedCredentials(Place(spec::StoreKind::kAzureBlob, "a"), key, terms).status().message(),
      HasSubstr("AZURE_CLIENT_ID"));
}

TEST(SignedUrl, GivesNoSignatureOfAWholeContainerAway) {
  const AccessTerms terms{.now = absl::FromUnixSeconds(1700000000), .lasts = absl::Hours(1)};
  Credentials sas{spec::CredentialKind::kSas};
  const spec::DataPlace place = Place(spec::StoreKind::kAzureBlob, "a/b");
  for (const char* whole : {"?sv=1&sr=c&sp=rwdl&sig=x", "sv=1&ss=b&srt=sco&sig=x", ""}) {
    sas.sas = whole;
    const auto url = SignedUrl(place, sas, terms);
    EXPECT_TRUE(absl::IsFailedPrecondition(url.status())) << url.status();
    EXPECT_THAT(url.status().message(), HasSubstr("account_key"));
  }
  sas.sas = "?sv=1&sr=b&sp=r&sig=x";
  EXPECT_EQ(*SignedUrl(place, sas, terms),
            "https://acme.blob.core.windows.net/images/a/b?sv=1&sr=b&sp=r&sig=x");
}

TEST(EndOf, IsNoLaterThanThatOfASignature) {
  const AccessTerms terms{.now = absl::FromUnixSeconds(1700000000), .lasts = absl::Hours(1)};
  const absl::Time asked = terms.now + terms.lasts;
  Credentials sas{spec::CredentialKind::kSas};
  const auto end = [&](const std::string& text) {
    sas.sas = text;
    return EndOf(sas, terms);
  };
  EXPECT_EQ(end("?sv=1&se=2023-11-14T22%3A30%3A00Z&sig=x"), absl::FromUnixSeconds(1700001000));
  EXPECT_EQ(end("se=2023-11-14"), absl::FromUnixSeconds(1699920000)) << "it has ended";
  EXPECT_EQ(end("se=2033-01-01T00:00:00Z"), asked);
  EXPECT_EQ(end("sv=1&sig=x"), asked);
  EXPECT_EQ(EndOf(ExampleKey(), terms), asked);
}

TEST(SignedUrl, IsOfOneObject) {
  const AccessTerms terms{.now = absl::FromUnixSeconds(1700000000), .lasts = absl::Hours(1)};
  const Credentials key{spec::CredentialKind::kAccountKey, kKey};
  const auto blob = SignedUrl(Place(spec::StoreKind::kAzureBlob, "a/b"), key, terms);
  EXPECT_THAT(*blob, StartsWith("https://acme.blob.core.windows.net/images/a/b?sv="));
  EXPECT_THAT(*SignedUrl(Place(spec::StoreKind::kS3, "a/b"), ExampleKey(), terms),
              AllOf(HasSubstr("X-Amz-Expires=3600"), Not(HasSubstr("wJalr"))));
  EXPECT_THAT(SignedUrl(Place(spec::StoreKind::kS3, ""), ExampleKey(), terms).status().message(),
              HasSubstr("whole container"));
}

}  // namespace
}  // namespace tutti::storage
