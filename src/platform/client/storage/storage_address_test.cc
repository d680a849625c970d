#include "platform/client/storage/storage_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

AddressNames Names() {
  AddressNames names;
  spec::Datastore photos{.name = "photos", .type = "azure_blob"};
  photos.place = {.kind = spec::StoreKind::kAzureBlob, .account = "acme", .container = "images"};
  photos.place.secret = "datastore.photos";
  photos.place.datastore = "photos";
  names.datastores["photos"] = photos;
  spec::Asset asset{.name = "pets", .version = "1", .type = "uri_folder"};
  asset.path = "azureml://datastores/photos/paths/pets";
  if (!names.data.Add(asset).ok()) std::abort();
  names.directory = "/desk";
  return names;
}

StorageAddress Parsed(const std::string& text) {
  auto address = ParseStorageAddress(text, Names());
  EXPECT_TRUE(address.ok()) << address.status();
  return address.ok() ? *address : StorageAddress{};
}

std::string Wrong(const std::string& text) {
  return std::string(ParseStorageAddress(text, Names()).status().message());
}

TEST(ParseStorageAddress, KnowsStoresJobsAndThisMachine) {
  const StorageAddress store = Parsed("azureml://datastores/photos/paths/a/b");
  EXPECT_EQ(store.path, "a/b");
  EXPECT_EQ(store.place.secret, "datastore.photos");
  EXPECT_FALSE(store.is_local() || store.is_job());
  EXPECT_TRUE(Parsed("s3://bucket/a/").ends_with_slash);
  EXPECT_TRUE(Parsed("s3://bucket/a/*.csv").place.is_pattern);
  const StorageAddress job = Parsed("job:brave_ant/outputs/model/");
  EXPECT_EQ(job.job, "brave_ant");
  EXPECT_EQ(job.path, "outputs/model");
  EXPECT_EQ(Parsed("job:brave_ant").path, "");
  EXPECT_EQ(Parsed("a/../b/").path, "/desk/b");
  EXPECT_EQ(Parsed("/x*").path, "/x*") << "shells expand patterns of this machine";
  EXPECT_EQ(Parsed("file:///data/a%20b").path, "/data/a b");
  EXPECT_EQ(Parsed(".").path, "/desk");
  EXPECT_TRUE(Parsed("file:x").is_local());
}

TEST(ParseStorageAddress, TakesDataByName) {
  const StorageAddress pets = Parsed("azureml:pets:1");
  EXPECT_EQ(pets.path, "pets");
  EXPECT_EQ(pets.text, "azureml:pets:1");
  EXPECT_EQ(pets.of_store, "azureml://datastores/photos/paths/pets");
  EXPECT_THAT(Wrong("azureml:cats:1"), HasSubstr("cats"));
}

TEST(ParseStorageAddress, KeepsASignatureOutOfMessages) {
  const StorageAddress signed_one =
      Parsed("https://acme.blob.core.windows.net/images/a?sv=1&sig=hunter2");
  EXPECT_EQ(signed_one.sas, "sv=1&sig=hunter2");
  EXPECT_THAT(signed_one.text, Not(HasSubstr("hunter2")));
  EXPECT_THAT(Wrong("https://example.org/x?sig=hunter2"),
              AllOf(HasSubstr("no address of a store"), Not(HasSubstr("hunter2"))));
}

TEST(AddressAt, IsWrittenAsTheAddressIsAndReadBack) {
  const std::string path = "d/ä 5%?.csv";
  for (const auto& [given, expected] : std::vector<std::pair<std::string, std::string>>{
           {"s3://d/d/", "s3://d/" + path},
           {"s3://d", "s3://d/" + path},
           {"gs://sets/a/*.csv", "gs://sets/" + path},
           {"azureml://datastores/photos", "azureml://datastores/photos/paths/" + path},
           {"azureml://datastores/photos/paths/", "azureml://datastores/photos/paths/" + path},
           {"azureml:pets:1", "azureml://datastores/photos/paths/" + path},
           {"https://acme.blob.core.windows.net/images/a%20b?sv=1&sig=hunter2",
            "https://acme.blob.core.windows.net/images/d/%C3%A4%205%25%3F.csv"},
           {"wasbs://images@acme.blob.core.windows.net",
            "wasbs://images@acme.blob.core.windows.net/d/%C3%A4%205%25%3F.csv"},
           {"job:brave_ant/logs", "job:brave_ant/" + path}}) {
    EXPECT_EQ(AddressAt(Parsed(given), path), expected) << given;
    EXPECT_EQ(Parsed(expected).path, path);
  }
  EXPECT_EQ(AddressAt(Parsed("a"), "/desk/a/" + path), "/desk/a/" + path);
}

TEST(ParseStorageAddress, SaysHowAddressesAreWritten) {
  EXPECT_THAT(Wrong("ftp://x/y"), HasSubstr("azureml://datastores/NAME/paths/PATH"));
  EXPECT_THAT(Wrong("azureml://datastores/photo/paths/x"), HasSubstr("photos"));
  EXPECT_THAT(Wrong("job:/x"), HasSubstr("names no job"));
  EXPECT_THAT(Wrong("job:a/../b"), HasSubstr("leads out"));
  EXPECT_FALSE(Wrong("").empty());
}

}  // namespace
}  // namespace tutti::client
