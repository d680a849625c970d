// Covers: datastore.cc, datastore_credentials.cc, spec/types/data_place.cc.
#include "spec/data/datastore_file.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "spec/site/site.h"

namespace tutti::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kBlob[] =
    "$schema: https://azuremlschemas.azureedge.net/latest/azureBlob.schema.json\n"
    "name: blobs\ntype: azure_blob\ndescription: images\naccount_name: acme\n"
    "container_name: images\n";

DatastoreFile ReadStore(absl::string_view text) {
  auto file = ReadDatastoreFile(text, "store.yml", "/base");
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? *std::move(file) : DatastoreFile();
}

std::string StoreError(absl::string_view text) {
  const auto file = ReadDatastoreFile(text, "store.yml", "/base");
  EXPECT_FALSE(file.ok()) << text;
  return std::string(file.status().message());
}

TEST(DatastoreFile, AzuresBlobsByAccountKey) {
  const DatastoreFile file = ReadStore(absl::StrCat(kBlob, "credentials:\n  account_key: a2V5\n"));
  const DataPlace& place = file.datastore.place;
  EXPECT_EQ(file.datastore.name, "blobs");
  EXPECT_EQ(file.datastore.description, "images");
  EXPECT_EQ(place.kind, StoreKind::kAzureBlob);
  EXPECT_EQ(place.account, "acme");
  EXPECT_EQ(place.container, "images");
  EXPECT_EQ(place.datastore, "blobs");
  EXPECT_EQ(place.credential, CredentialKind::kAccountKey);
  EXPECT_EQ(place.secret, "datastore.blobs");
  EXPECT_EQ(file.credentials, R"({"account_key":"a2V5","store":"azure_blob acme/images"})");
  EXPECT_THAT(file.warnings, IsEmpty());
  EXPECT_THAT(JsonOf(file.datastore).dump(), Not(HasSubstr("a2V5")));
}

TEST(DatastoreFile, OtherCredentialsAndTypes) {
  EXPECT_EQ(ReadStore(absl::StrCat(kBlob, "credentials: {sas_token: '?sv=1&sig=x'}\n")).credentials,
            R"({"sas":"sv=1&sig=x","store":"azure_blob acme/images"})");
  const DatastoreFile lake = ReadStore(
      "name: lake\ntype: azure_data_lake_gen2\naccount_name: acme\nfilesystem: fs\n"
      "endpoint: core.usgovcloudapi.net\n"
      "credentials: {tenant_id: t, client_id: c, client_secret: s}\n");
  EXPECT_EQ(lake.datastore.place.kind, StoreKind::kAzureDataLake);
  EXPECT_EQ(lake.datastore.place.endpoint, "https://acme.dfs.core.usgovcloudapi.net");
  EXPECT_EQ(lake.datastore.place.credential, CredentialKind::kServicePrincipal);
  EXPECT_EQ(lake.credentials,
            R"({"client":"c","client_secret":"s","store":"azure_data_lake acme/fs at )"
            R"(https://acme.dfs.core.usgovcloudapi.net","tenant":"t"})");
  const std::string principal =
      absl::StrCat(kBlob, "credentials: {tenant_id: t, client_id: c, client_secret: hunter22, ");
  EXPECT_THAT(
      ReadStore(principal + "authority_url: https://login.microsoftonline.us/}\n").credentials,
      HasSubstr(R"("authority":"https://login.microsoftonline.us",)"));
  EXPECT_THAT(ReadStore(principal + "authority_url: https://login.acme.org/entra/}\n").credentials,
              HasSubstr(R"("authority":"https://login.acme.org/entra",)"));
  const DatastoreFile bucket = ReadStore(
      "name: b\ntype: s3\nbucket_name: sets\nregion: eu-west-1\nendpoint: minio.example.org/\n"
      "credentials: {access_key_id: a, secret_access_key: s}\n");
  EXPECT_EQ(bucket.datastore.place.endpoint, "https://minio.example.org");
  EXPECT_EQ(bucket.datastore.place.region, "eu-west-1");
  EXPECT_EQ(bucket.credentials,
            R"({"access_key_id":"a","secret_access_key":"s","store":"s3 sets at )"
            R"(https://minio.example.org"})");
  const DatastoreFile folder = ReadStore("name: f\ntype: nfs\npath: ../data/\n");
  EXPECT_EQ(folder.datastore.place.kind, StoreKind::kLocal);
  EXPECT_EQ(folder.datastore.place.path, "/data");
  const DatastoreFile open = ReadStore("name: g\ntype: gcs\nbucket_name: maps\n");
  EXPECT_EQ(open.datastore.place.credential, CredentialKind::kNone);
  EXPECT_THAT(open.warnings, ElementsAre(HasSubstr("only public data can be read")));
}

TEST(DatastoreFile, NamesASecretThatIsThere) {
  const DatastoreFile file =
      ReadStore(absl::StrCat(kBlob, "credentials: {type: sas, secret: storage-sas}\n"));
  EXPECT_EQ(file.datastore.place.credential, CredentialKind::kSas);
  EXPECT_EQ(file.datastore.place.secret, "storage-sas");
  EXPECT_EQ(file.credentials, "");
  EXPECT_THAT(StoreError(absl::StrCat(kBlob, "credentials: {secret: datastore.other}\n")),
              HasSubstr("credentials.secret must name a secret"));
}

TEST(DatastoreFile, AFileServerThatNodesReadWithoutAMount) {
  const DatastoreFile file =
      ReadStore("name: n\ntype: nfs\nserver: nas.example.org:12049\nexport: /data/images/\n");
  EXPECT_EQ(file.datastore.type, "nfs");
  EXPECT_EQ(StoreOf(file.datastore.place), "nfs data/images at nfs://nas.example.org:12049");
  EXPECT_EQ(file.datastore.place.datastore, "n");
  EXPECT_THAT(file.warnings, IsEmpty());
  const auto wrong = [](absl::string_view keys) {
    return StoreError(absl::StrCat("name: n\ntype: nfs\n", keys));
  };
  EXPECT_THAT(wrong("server: a:b\nexport: /x\n"), HasSubstr("store.yml:3: server must be HOST"));
  EXPECT_THAT(wrong("server: a\n"), HasSubstr("needs the key \"export\""));
  EXPECT_THAT(wrong("server: a\nexport: /\n"), HasSubstr("store.yml:4: a datastore with a"));
  EXPECT_THAT(wrong("server: a\nexport: /x/../y\n"), HasSubstr("store.yml:4: export \"x/../y\""));
  EXPECT_THAT(wrong("server: a\nexport: /x\npath: /y\n"), HasSubstr("\"path\""));
  EXPECT_THAT(wrong(""), HasSubstr("\"server\" and \"export\""));
}

TEST(DatastoreFile, WarnsOfCredentialsThatGoUnencrypted) {
  const auto warnings = [](absl::string_view endpoint, absl::string_view credentials) {
    return ReadStore(absl::StrCat("name: b\ntype: s3\nbucket_name: sets\nendpoint: '", endpoint,
                                  "'\n", credentials))
        .warnings;
  };
  constexpr char kKey[] = "credentials: {access_key_id: a, secret_access_key: s}\n";
  for (const char* away :
       {"http://minio.example.org:9000", "http://127.evil.org", "http://[::2]:9"}) {
    EXPECT_THAT(warnings(away, kKey),
                ElementsAre(AllOf(HasSubstr("store.yml:4: "), HasSubstr("by http"))))
        << away;
    EXPECT_THAT(warnings(away, ""), ElementsAre(HasSubstr("only public data"))) << away;
  }
  for (const char* fine : {"http://127.0.0.1:9000", "http://localhost:9000/", "http://s3.localhost",
                           "http://[::1]:9", "https://minio.example.org"}) {
    EXPECT_THAT(warnings(fine, kKey), IsEmpty()) << fine;
  }
}

TEST(DatastoreFile, SaysWhatIsWrongAndWhereAndNoCredential) {
  EXPECT_THAT(StoreError("type: azure_blob\naccount_name: a\ncontainer_name: c\n"),
              HasSubstr("store.yml:1: the key \"name\" is missing"));
  EXPECT_THAT(StoreError("name: a.b\ntype: s3\nbucket_name: c\n"),
              HasSubstr("store.yml:1: a datastore's name is of letters"));
  EXPECT_THAT(StoreError("name: n\n"), HasSubstr("the key \"type\" is missing: azure_blob"));
  EXPECT_THAT(StoreError("name: n\ntype: azure_blob\n"),
              AllOf(HasSubstr("needs the key \"account_name\""),
                    HasSubstr("needs the key \"container_name\"")));
  EXPECT_THAT(StoreError("name: n\ntype: azure_blob\naccount_name: a/b\ncontainer_name: c\n"),
              HasSubstr("store.yml:3: account_name \"a/b\" has a character"));
  EXPECT_THAT(StoreError("name: n\ntype: one_lake\n"), HasSubstr("OneLake is not read here"));
  EXPECT_THAT(StoreError(absl::StrCat(kBlob, "filesystem: f\n")),
              HasSubstr("store.yml:7: \"filesystem\" does not go with the keys beside it"));
  EXPECT_THAT(StoreError(absl::StrCat(kBlob, "container: f\n")), HasSubstr("unknown key"));
  EXPECT_THAT(StoreError(absl::StrCat(kBlob, "endpoint: 'http://user@host'\n")),
              HasSubstr("store.yml:7: endpoint must be a server's URL"));
  EXPECT_THAT(StoreError("command: x\n"), HasSubstr("this is a file of kind job"));
  for (const char* credentials :
       {"{account_key: hunter22!}", "{account_key: aHVudGVyMjI=, sas_token: hunter22}",
        "{client_secret: hunter22}", "{access_key_id: hunter22, secret_access_key: hunter22}",
        "{tenant_id: t, client_id: c, client_secret: hunter22, authority_url: 'http://login'}",
        "{tenant_id: t, client_id: c, client_secret: hunter22, authority_url: 'http://localhost'}",
        "{tenant_id: t, client_id: c, client_secret: hunter22, authority_url: "
        "'https://a.org/../x'}",
        "hunter22", "{account_key: [hunter22]}", "{}"}) {
    const std::string error = StoreError(absl::StrCat(kBlob, "credentials: ", credentials, "\n"));
    EXPECT_THAT(error, HasSubstr("store.yml:7: credentials")) << credentials;
    EXPECT_THAT(error, Not(HasSubstr("hunter22"))) << credentials;
  }
  EXPECT_THAT(StoreError("name: g\ntype: gcs\nbucket_name: m\ncredentials: {account_key: a2V5}\n"),
              HasSubstr("access_key_id"));
}

TEST(Datastores, AreKeptInTheServicesFolder) {
  const base::TemporaryDirectory home;
  Datastores stores;
  for (const char* text : {"name: b\ntype: s3\nbucket_name: sets\ntags: {a: b}\n",
                           "name: f\ntype: local\npath: /d\n"}) {
    const DatastoreFile file = ReadStore(text);
    stores[file.datastore.name] = file.datastore;
  }
  ASSERT_TRUE(WriteDatastores(home.path(), stores).ok());
  const auto site = ReadSite(home.path());
  ASSERT_TRUE(site.ok()) << site.status();
  EXPECT_EQ(JsonOf(site->datastores), JsonOf(stores));
  EXPECT_EQ(site->datastores.at("b").place.container, "sets");
  EXPECT_EQ(site->datastores.at("b").tags.at("a"), "b");
}

}  // namespace
}  // namespace tutti::spec
