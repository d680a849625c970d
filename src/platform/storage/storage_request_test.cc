#include "platform/storage/storage_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::storage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(CredentialsFrom, ReadsTheFieldsOfEachKind) {
  const auto key = CredentialsFrom(spec::CredentialKind::kAccountKey, R"({"account_key": "K=="})");
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(key->account_key, "K==");
  const auto principal = CredentialsFrom(
      spec::CredentialKind::kServicePrincipal,
      R"({"tenant": "t", "client": "c", "client_secret": "s", "authority": "https://a", "more": 1})");
  ASSERT_TRUE(principal.ok()) << principal.status();
  EXPECT_EQ(principal->client_secret, "s");
  EXPECT_EQ(principal->authority, "https://a");
  const auto access = CredentialsFrom(spec::CredentialKind::kAccessKey,
                                      R"({"access_key_id": "a", "secret_access_key": "b"})");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->session_token, "");
}

TEST(CredentialsFrom, TakesTheBareTextOfAKeyOrASas) {
  EXPECT_EQ(CredentialsFrom(spec::CredentialKind::kAccountKey, " K==\n")->account_key, "K==");
  EXPECT_EQ(CredentialsFrom(spec::CredentialKind::kSas, "?sv=1&sig=2")->sas, "?sv=1&sig=2");
  EXPECT_TRUE(CredentialsFrom(spec::CredentialKind::kNone, "anything").ok());
}

TEST(CredentialsFrom, NamesWhatIsMissingAndNeverTheValue) {
  for (const char* value : {"hush-hush", "{hush-hush", R"({"access_key_id": "hush-hush"})",
                            R"({"access_key_id": "hush-hush", "secret_access_key": 3})", ""}) {
    const auto credentials = CredentialsFrom(spec::CredentialKind::kAccessKey, value);
    ASSERT_TRUE(absl::IsInvalidArgument(credentials.status())) << value;
    EXPECT_THAT(std::string(credentials.status().message()), Not(HasSubstr("hush"))) << value;
  }
  EXPECT_THAT(
      std::string(CredentialsFrom(spec::CredentialKind::kAccessKey, R"({"access_key_id": "x"})")
                      .status()
                      .message()),
      HasSubstr("secret_access_key"));
}

TEST(Described, NamesTheStoreInItsOwnWords) {
  EXPECT_EQ(Described({spec::StoreKind::kAzureBlob, "acme", "images", "", "", "train"}),
            "container \"images\" of Azure account \"acme\", path \"train\"");
  EXPECT_EQ(Described({spec::StoreKind::kS3, "", "b", "https://minio.example.org"}),
            "bucket \"b\" at https://minio.example.org");
  EXPECT_EQ(Described({spec::StoreKind::kLocal, "", "", "", "", "/data/a"}), "/data/a");
}

TEST(Names, AreReadBack) {
  EXPECT_EQ(OperationFromName("fetch"), Operation::kFetch);
  EXPECT_EQ(OperationFromName("digest"), Operation::kDigest);
  EXPECT_EQ(PlaceTypeFromName("folder"), PlaceType::kFolder);
  EXPECT_EQ(OperationFromName("copy"), std::nullopt);
}

}  // namespace
}  // namespace tutti::storage
