// Covers: nfs_endpoint.cc, percent.cc.
#include "spec/data/data_address.h"

#include <gmock/gmock.h>

namespace tutti::spec {
namespace {

using ::testing::HasSubstr;

constexpr char kAzurite[] = "http://127.0.0.1:10000/devstoreaccount1";

Datastores SomeDatastores() {
  Datastores stores;
  const auto add = [&](const std::string& name, DataPlace place) {
    place.datastore = name;
    stores[name] = {.name = name, .place = std::move(place)};
  };
  add("blobs", {.kind = StoreKind::kAzureBlob,
                .account = "acme",
                .container = "images",
                .credential = CredentialKind::kAccountKey,
                .secret = "datastore.blobs"});
  add("emulator", {.kind = StoreKind::kAzureBlob,
                   .account = "devstoreaccount1",
                   .container = "test",
                   .endpoint = kAzurite});
  add("bucket", {.kind = StoreKind::kS3,
                 .container = "sets",
                 .endpoint = "https://minio.example.org",
                 .region = "eu-west-1",
                 .credential = CredentialKind::kAccessKey,
                 .secret = "datastore.bucket"});
  add("server", {.kind = StoreKind::kNfs, .container = "a", .endpoint = "nfs://10.0.0.5:12049"});
  add("share", {.kind = StoreKind::kLocal, .path = "/mnt/share"});
  return stores;
}

DataPlace PlaceAt(absl::string_view address) {
  const auto place = PlaceOf(address, SomeDatastores());
  EXPECT_TRUE(place.ok()) << address << ": " << place.status();
  EXPECT_TRUE(place.ok() && place->has_value()) << address;
  return place.ok() && place->has_value() ? **place : DataPlace();
}

std::string AddressError(absl::string_view address) {
  const auto place = PlaceOf(address, SomeDatastores());
  EXPECT_FALSE(place.ok()) << address;
  return std::string(place.status().message());
}

TEST(PlaceOf, ADatastoresPathIsInItsContainer) {
  for (const char* address : {"azureml://datastores/blobs/paths/train/set one",
                              "azureml://datastores/blobs/paths/train/set one/",
                              "azureml://subscriptions/s/resourceGroups/r/workspaces/w/datastores/"
                              "blobs/paths/train/set one",
                              "wasbs://images@acme.blob.core.windows.net/train/set%20one",
                              "abfss://images@ACME.dfs.core.windows.net/train/set%20one/",
                              "https://acme.blob.core.windows.net/images/train/set%20one"}) {
    const DataPlace place = PlaceAt(address);
    EXPECT_EQ(place.datastore, "blobs") << address;
    EXPECT_EQ(place.account, "acme");
    EXPECT_EQ(place.container, "images");
    EXPECT_EQ(place.path, "train/set one") << address;
    EXPECT_EQ(place.secret, "datastore.blobs");
    EXPECT_FALSE(place.is_pattern);
  }
  EXPECT_EQ(PlaceAt("azureml://datastores/blobs/paths/").path, "");
  EXPECT_EQ(PlaceAt("azureml://datastores/blobs").path, "");
  EXPECT_EQ(PlaceAt("azureml://datastores/blobs/paths/a%20b").path, "a%20b") << "it is no URL";
}

TEST(PlaceOf, ABucketOfADatastoreHasItsServerAndCredentials) {
  const DataPlace place = PlaceAt("s3://sets/a/b.csv");
  EXPECT_EQ(place.datastore, "bucket");
  EXPECT_EQ(place.endpoint, "https://minio.example.org");
  EXPECT_EQ(place.region, "eu-west-1");
  EXPECT_EQ(place.path, "a/b.csv");
  EXPECT_EQ(PlaceAt(std::string(kAzurite) + "/test/a%2Bb").path, "a+b");
}

TEST(PlaceOf, WithoutADatastoreItIsPublic) {
  const DataPlace bucket = PlaceAt("s3a://other/a");
  EXPECT_EQ(bucket.kind, StoreKind::kS3);
  EXPECT_EQ(bucket.container, "other");
  EXPECT_EQ(bucket.credential, CredentialKind::kNone);
  EXPECT_EQ(bucket.datastore, "");
  EXPECT_EQ(PlaceAt("gs://maps/x").kind, StoreKind::kGcs);
  const DataPlace blob = PlaceAt("abfss://c@a.dfs.core.chinacloudapi.cn/x");
  EXPECT_EQ(blob.kind, StoreKind::kAzureBlob) << "Data Lake's own interface has nothing public";
  EXPECT_EQ(blob.endpoint, "https://a.blob.core.chinacloudapi.cn");
  EXPECT_EQ(PlaceAt("https://acme.blob.core.windows.net/others/x").secret, "");
  EXPECT_EQ(PlaceAt("https://acme.blob.core.chinacloudapi.cn/images/x").secret, "")
      << "another cloud's account of that name is another's";
}

TEST(PlaceOf, PatternsAreToldFromPaths) {
  EXPECT_TRUE(PlaceAt("azureml://datastores/blobs/paths/a/*.png").is_pattern);
  EXPECT_TRUE(PlaceAt("azureml://datastores/blobs/paths/a?.png").is_pattern);
  EXPECT_TRUE(PlaceAt("wasbs://images@acme.blob.core.windows.net/**/x").is_pattern);
  EXPECT_FALSE(PlaceAt("https://acme.blob.core.windows.net/images/a%2Ab").is_pattern);
}

TEST(PlaceOf, AFolderOfThisMachineIsAPath) {
  EXPECT_EQ(PlaceAt("azureml://datastores/share/paths/a/b").path, "/mnt/share/a/b");
  EXPECT_EQ(PlaceAt("azureml://datastores/share/paths/").path, "/mnt/share");
  EXPECT_EQ(PlaceAt("azureml://datastores/share/paths/a/b").root, "/mnt/share");
  EXPECT_THAT(AddressError("azureml://datastores/share/paths/*"),
              HasSubstr("name the folder itself"));
}

TEST(PlaceOf, AFileServersExportIsItsContainer) {
  for (const char* address :
       {"azureml://datastores/server/paths/b/c d", "nfs://10.0.0.5:12049/a/b/c%20d/"}) {
    const DataPlace place = PlaceAt(address);
    EXPECT_EQ(place.datastore, "server") << address;
    EXPECT_EQ(place.path, "b/c d") << address;
  }
  const DataPlace other = PlaceAt("nfs://Other.example.org:2049/a/b/*.png");
  EXPECT_EQ(other.datastore, "");
  EXPECT_EQ(StoreOf(other), "nfs a at nfs://other.example.org");
  EXPECT_EQ(other.path, "b/*.png");
  EXPECT_TRUE(other.is_pattern);
  EXPECT_THAT(AddressError("nfs://h"), HasSubstr("names no container"));
  EXPECT_THAT(AddressError("nfs://h/a/../b"), HasSubstr("leads out of its container"));
  for (const char* address : {"nfs:///a/b", "nfs://h:0/a/b", "nfs://u@h/a/b", "nfs://h/../b"}) {
    const auto place = PlaceOf(address, SomeDatastores());
    EXPECT_TRUE(place.ok() && !place->has_value()) << address;
  }
}

TEST(PlaceOf, OtherAddressesHaveNone) {
  for (const char* address :
       {"azureml:iris:1", "azureml://jobs/a/outputs/b/paths/c", "https://example.org/a/b", "./data",
        "https://acme.blob.core.windows.net/images/a?sv=1&sig=x",
        "wasbs://images@acme.example.org/a", "http://127.0.0.1:10000/devstoreaccount1/testing/a"}) {
    const auto place = PlaceOf(address, SomeDatastores());
    ASSERT_TRUE(place.ok()) << address << place.status();
    EXPECT_FALSE(place->has_value()) << address;
  }
}

TEST(PlaceOf, WhatIsWrongIsNamed) {
  EXPECT_THAT(AddressError("azureml://datastores/blob/paths/a"),
              HasSubstr("there is no datastore \"blob\" (did you mean \"blobs\"?)"));
  EXPECT_THAT(AddressError("azureml://datastores/blobs/path/a"),
              HasSubstr("datastores/NAME/paths/PATH"));
  EXPECT_THAT(AddressError("s3://sets/a/../b"), HasSubstr("leads out of its container"));
  EXPECT_THAT(AddressError("wasbs://images@acme.blob.core.windows.net/%2e%2e/b"),
              HasSubstr("leads out"));
  EXPECT_THAT(AddressError("wasbs://images@acme.blob.core.windows.net/a%00"),
              HasSubstr("zero byte"));
  EXPECT_THAT(AddressError("s3:///a"), HasSubstr("names no container or bucket"));
  EXPECT_THAT(AddressError("s3://a@evil.example.org/b"), HasSubstr("names no container or bucket"));
}

}  // namespace
}  // namespace tutti::spec
