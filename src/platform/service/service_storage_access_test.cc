// Reaching datastores from elsewhere, without their credentials.
// Covers: secrets/storage_access.cc.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "platform/service/world_for_tests.h"
#include "spec/data/datastore.h"

namespace tutti::service {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kAccountKey[] = "aHVudGVyMjI=";

class StorageAccessTest : public ServiceTest {
 protected:
  StorageAccessTest() {
    spec::Datastores stores;
    stores["blobs"] = {.name = "blobs",
                       .place = {.kind = spec::StoreKind::kAzureBlob,
                                 .account = "acme",
                                 .container = "images",
                                 .credential = spec::CredentialKind::kAccountKey,
                                 .secret = "datastore.blobs",
                                 .datastore = "blobs"}};
    stores["bucket"] = {.name = "bucket",
                        .place = {.kind = spec::StoreKind::kS3,
                                  .container = "sets",
                                  .endpoint = "http://127.0.0.1:1",
                                  .credential = spec::CredentialKind::kAccessKey,
                                  .secret = "datastore.bucket",
                                  .datastore = "bucket"}};
    if (!spec::WriteDatastores(folder_.path(), stores).ok()) std::abort();
  }
  void SetKeys(const std::string& store = "azure_blob acme/images") {
    ASSERT_TRUE(service()
                    .SetSecret("datastore.blobs", absl::StrCat("{\"account_key\": \"", kAccountKey,
                                                               "\", \"store\": \"", store, "\"}"))
                    .ok());
    ASSERT_TRUE(service()
                    .SetSecret("datastore.bucket",
                               R"({"access_key_id": "AKIA", "secret_access_key": "s3cr3t-key"})")
                    .ok());
  }
};

TEST_F(StorageAccessTest, GivesASignatureAndNeverTheKey) {
  SetKeys();
  const auto grant =
      service().GrantStorage({.address = "azureml://datastores/blobs/paths/a/b", .write = true});
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(grant->place.path, "a/b");
  EXPECT_THAT(GrantJson(*grant), AllOf(HasSubstr("sp=racwdl"), Not(HasSubstr(kAccountKey)),
                                       Not(HasSubstr("account_key"))));
  const auto signed_url =
      service().SignStorage({.address = "azureml://datastores/blobs/paths/a/b"});
  ASSERT_TRUE(signed_url.ok()) << signed_url.status();
  EXPECT_THAT(signed_url->url, HasSubstr("https://acme.blob.core.windows.net/images/a/b?sv="));
  EXPECT_EQ(signed_url->expires, grant->expires);
  const auto presigned =
      service().SignStorage({.address = "s3://sets/x", .lasts = absl::Hours(100)});
  ASSERT_TRUE(presigned.ok()) << presigned.status();
  EXPECT_THAT(presigned->url, AllOf(HasSubstr("X-Amz-Expires=360000"), Not(HasSubstr("s3cr3t"))));
}

TEST_F(StorageAccessTest, SaysWhyItGivesNone) {
  const auto why = [&](const std::string& address, absl::Duration lasts = absl::Hours(1)) {
    return std::string(
        service().GrantStorage({.address = address, .lasts = lasts}).status().message());
  };
  EXPECT_THAT(why("azureml://datastores/blobs/paths/a"), HasSubstr("datastore.blobs"));
  SetKeys("azure_blob other/images");
  EXPECT_THAT(why("azureml://datastores/blobs/paths/a"),
              AllOf(HasSubstr("other/images"), HasSubstr("tutti datastore create")));
  EXPECT_THAT(why("azureml://datastores/blob/paths/a"), HasSubstr("blobs"));
  EXPECT_THAT(why("/tmp/x"), HasSubstr("no address of a store"));
  EXPECT_THAT(why("s3://sets/x", absl::Minutes(1)), HasSubstr("900"));
  EXPECT_THAT(why("s3://sets/x", absl::Hours(13)), HasSubstr("43200"));
  EXPECT_TRUE(absl::IsUnavailable(service().GrantStorage({.address = "s3://sets/x"}).status()));
  EXPECT_EQ(service().GrantStorage({.address = "s3://public/x"})->credentials.kind,
            spec::CredentialKind::kNone);
}

}  // namespace
}  // namespace tutti::service
