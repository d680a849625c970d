// Covers: data_finder.cc.
#include "spec/site/table_inputs.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class TableInputsTest : public ::testing::Test {
 protected:
  TableInputsTest() {
    site_.jobs = "/home/jobs";
    site_.datastores["photos"] = {.name = "photos",
                                  .place = {.kind = StoreKind::kAzureBlob,
                                            .account = "acme",
                                            .container = "images",
                                            .credential = CredentialKind::kAccountKey,
                                            .secret = "datastore.photos",
                                            .datastore = "photos"}};
    site_.datastores["shared"] = {
        .name = "shared",
        .place = {.kind = StoreKind::kLocal, .path = "/shared", .datastore = "shared"}};
    EXPECT_TRUE(site_.data.Add("https://e.org/sets", "/copies").ok());
    local_.path = "/data/t";
    stored_.place = site_.datastores["photos"].place;
    stored_.place->path = "sets/t";
  }

  absl::StatusOr<std::vector<Input>> Read(const std::string& paths, const Input& table) const {
    auto read = ReadTable(absl::StrCat("paths: [", paths, "]"), "MLTable");
    if (!read.ok()) return read.status();
    return TableInputs(*read, table, site_, "MLTable");
  }
  // Where each lies, and where it is to lie.
  std::vector<std::pair<std::string, std::string>> Of(const std::string& paths,
                                                      const Input& table) const {
    const auto inputs = Read(paths, table);
    EXPECT_TRUE(inputs.ok()) << inputs.status();
    std::vector<std::pair<std::string, std::string>> all;
    if (!inputs.ok()) return all;
    for (const Input& input : *inputs) {
      const std::string path = input.place
                                   ? absl::StrCat(StoreOf(*input.place), ":", input.place->path,
                                                  input.place->is_pattern ? " (pattern)" : "")
                                   : input.path;
      all.emplace_back(absl::StrCat(path, input.pattern.empty() ? "" : " : ", input.pattern),
                       input.placed);
    }
    return all;
  }
  std::string Error(const std::string& path, const Input& table) const {
    return std::string(Read(path, table).status().message());
  }

  Site site_ = BuiltInSite();
  Input local_{.type = "mltable", .mode = "eval_mount"}, stored_ = local_;
};

TEST_F(TableInputsTest, PathsCountFromTheTablesFolderAndLoseWhatTheyHaveInCommon) {
  EXPECT_THAT(Of("{file: ./x/a.csv}", local_), ElementsAre(Pair("/data/t/x/a.csv", "a.csv")));
  EXPECT_THAT(Of("{folder: .}", local_), ElementsAre(Pair("/data/t", "")));
  EXPECT_THAT(Of("{pattern: ./year-*/*.csv}", local_),
              ElementsAre(Pair("/data/t : year-*/*.csv", "")));
  EXPECT_THAT(Of("{pattern: './x/y/./[ab].csv'}", local_),
              ElementsAre(Pair("/data/t/x/y : [ab].csv", "")));
  EXPECT_THAT(Of("{file: ../u/a.csv}, {file: ./a.csv}, {folder: /data/v}", local_),
              ElementsAre(Pair("/data/u/a.csv", "u/a.csv"), Pair("/data/t/a.csv", "t/a.csv"),
                          Pair("/data/v", "v")));
  EXPECT_THAT(Of("{folder: 'file:///other/x'}", local_), ElementsAre(Pair("/other/x", "")));
}

TEST_F(TableInputsTest, PathsOfATableInAStoreStayInItsContainer) {
  EXPECT_THAT(Of("{file: a.csv}, {pattern: './**/*.txt'}, {folder: ../v}", stored_),
              ElementsAre(Pair("azure_blob acme/images:sets/t/a.csv", "t/a.csv"),
                          Pair("azure_blob acme/images:sets/t/**/*.txt (pattern)", "t"),
                          Pair("azure_blob acme/images:sets/v", "v")));
  EXPECT_EQ(Read("{file: a.csv}", stored_)->at(0).place->secret, "datastore.photos");
  EXPECT_TRUE(Read("{pattern: '[ab].csv'}", stored_)->at(0).place->has_classes);
  EXPECT_EQ(
      Error("{file: ../../../secret}", stored_),
      "MLTable:1: file: \"../../../secret\" leads out of the container that the table lies in");
  EXPECT_THAT(Error("{pattern: ../../../*}", stored_), HasSubstr("leads out of the container"));
  EXPECT_THAT(Error("{pattern: '*/../../x'}", local_), HasSubstr("behind a wildcard"));
  for (const char* path : {"/etc/passwd", "file:///etc/passwd"}) {
    EXPECT_THAT(Error(absl::StrCat("{file: '", path, "'}"), stored_),
                HasSubstr("is a path of a machine, and the table lies in a store"));
  }
  Input odd = stored_;
  odd.place->path = "sets/t*";
  EXPECT_THAT(Error("{pattern: '*.csv'}", odd), HasSubstr("a wildcard in its name"));
  EXPECT_EQ(Of("{file: a.csv}", odd)[0].first, "azure_blob acme/images:sets/t*/a.csv");
}

TEST_F(TableInputsTest, AddressesAreThoseOfInputs) {
  EXPECT_THAT(Of("{folder: 'azureml://datastores/photos/paths/x'}", local_),
              ElementsAre(Pair("azure_blob acme/images:x", "")));
  EXPECT_THAT(Of("{pattern: 'wasbs://images@acme.blob.core.windows.net/a%20b/*.csv'}", local_),
              ElementsAre(Pair("azure_blob acme/images:a b/*.csv (pattern)", "")));
  EXPECT_THAT(Of("{pattern: 'azureml://datastores/shared/paths/x/*.csv'}", local_),
              ElementsAre(Pair("/shared/x : *.csv", "")));
  EXPECT_THAT(Of("{pattern: 'https://e.org/sets/a%20b/*.csv'}", local_),
              ElementsAre(Pair("/copies/a b : *.csv", "")));
  EXPECT_THAT(Of("{folder: 'azureml://jobs/j/outputs/o/paths/x'}", local_),
              ElementsAre(Pair("/home/jobs/j/outputs/o/x", "")));
  EXPECT_THAT(Of("{file: 'https://f.org:81/x/a.csv?sv=1&sig=s'}", local_),
              ElementsAre(Pair("https://f.org:81/x/a.csv?sv=1&sig=s", "a.csv")));
  EXPECT_THAT(Error("{file: 'https://f.org/*.csv'}", local_), HasSubstr("write \"pattern:\""));
  EXPECT_THAT(Error("{folder: 'https://f.org/x'}", local_), HasSubstr("cannot list them"));
  EXPECT_THAT(Error("{file: 'https://u:p@f.org/x'}", local_), HasSubstr("has a user"));
  EXPECT_THAT(Error("{file: 'azureml://datastores/photo/paths/x'}", local_),
              HasSubstr("no datastore \"photo\""));
  EXPECT_THAT(Error("{file: 'azureml:other:1'}", local_),
              HasSubstr("tutti data map azureml:other"));
  EXPECT_THAT(Error("{pattern: 'wasbs://c@a.blob.core.windows.net/a%2Ab/*'}", local_),
              HasSubstr("encoded wildcard"));
  EXPECT_THAT(Error("{pattern: 'wasbs://c@a.blob.core.windows.net/a?'}", local_),
              HasSubstr("write \"*\""));
  EXPECT_THAT(Error("{file: 's3://b/x/../y'}", local_), HasSubstr("leads out"));
  EXPECT_THAT(Error("{file: 's3://b'}", local_), HasSubstr("names no file"));
  EXPECT_THAT(Error("{file: 's3://b/x//y'}", local_), HasSubstr("empty component"));
}

TEST_F(TableInputsTest, DataByNameAreThoseOfInputs) {
  ASSERT_TRUE(
      site_.data_assets.Add({.name = "people", .type = "uri_folder", .path = "/data/people"}).ok());
  ASSERT_TRUE(site_.data_assets
                  .Add({.name = "cats",
                        .type = "uri_folder",
                        .path = "azureml://datastores/photos/paths/cats"})
                  .ok());
  EXPECT_THAT(Of("{folder: 'azureml:people:1'}", local_), ElementsAre(Pair("/data/people", "")));
  EXPECT_THAT(Of("{folder: 'azureml:people:1'}", stored_), ElementsAre(Pair("/data/people", "")));
  EXPECT_THAT(Of("{pattern: 'azureml:people@latest/*.csv'}", local_),
              ElementsAre(Pair("/data/people : *.csv", "")));
  EXPECT_THAT(Of("{pattern: 'azureml:cats:1/*.png'}", local_),
              ElementsAre(Pair("azure_blob acme/images:cats/*.png (pattern)", "")));
  EXPECT_THAT(Error("{folder: 'azureml:people:2'}", local_), HasSubstr("people"));
  EXPECT_THAT(Error("{folder: 'azureml:other:1'}", local_),
              HasSubstr("tutti data create --file FILE"));
}

TEST_F(TableInputsTest, EachPathHasTheSecretOfItsOwnDatastore) {
  site_.datastores["more"] = {.name = "more",
                              .place = {.kind = StoreKind::kS3,
                                        .container = "more",
                                        .credential = CredentialKind::kAccessKey,
                                        .secret = "datastore.more",
                                        .datastore = "more"}};
  const auto inputs = Read(
      "{file: a}, {file: 'azureml://datastores/more/paths/a'}, {file: 's3://public/a'}", stored_);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_EQ(inputs->at(0).place->secret, "datastore.photos");
  EXPECT_EQ(inputs->at(1).place->secret, "datastore.more");
  EXPECT_EQ(inputs->at(2).place->secret, "");
}

TEST_F(TableInputsTest, AFileOfAnEarlierJobIsTheOneThatItsOutputHas) {
  const base::TemporaryDirectory jobs;
  site_.jobs = jobs.path().native();
  const std::filesystem::path output = jobs.path() / "j/outputs/o";
  ASSERT_TRUE(base::MakeDirectories(output).ok());
  ASSERT_TRUE(base::WriteFileAtomic(output / "model.bin", "").ok());
  EXPECT_THAT(Of("{file: 'azureml://jobs/j/outputs/o'}", local_),
              ElementsAre(Pair((output / "model.bin").native(), "model.bin")));
}

TEST_F(TableInputsTest, PatternsAreCheckedAlikeHereAndInAStore) {
  for (const Input& table : {local_, stored_}) {
    EXPECT_THAT(Error("{pattern: '*/../x.csv'}", table), HasSubstr("behind a wildcard"));
    EXPECT_THAT(Error("{pattern: 'a/*/'}", table), HasSubstr("names no file"));
  }
}

TEST_F(TableInputsTest, FilesOfSeveralStoresLieInFoldersOfTheirs) {
  EXPECT_THAT(
      Of("{file: ./a.csv}, {file: 's3://one/x/a.csv'}, {file: 's3://one/y/a.csv'}, "
         "{file: 'gs://one/a.csv'}, {file: 'https://f.org/a.csv'}, "
         "{folder: 'azureml://datastores/photos/paths/z'}",
         local_),
      ElementsAre(Pair("/data/t/a.csv", "local/a.csv"), Pair("s3 one:x/a.csv", "one-2/x/a.csv"),
                  Pair("s3 one:y/a.csv", "one-2/y/a.csv"), Pair("gcs one:a.csv", "one/a.csv"),
                  Pair("https://f.org/a.csv", "f.org/a.csv"),
                  Pair("azure_blob acme/images:z", "photos")));
  EXPECT_THAT(Of("{file: 'https://f.org/a.csv?v=1'}, {file: 'https://f.org/a.csv?v=2'}", local_),
              ElementsAre(Pair("https://f.org/a.csv?v=1", "f.org/a.csv"),
                          Pair("https://f.org/a.csv?v=2", "f.org-2/a.csv")));
}

}  // namespace
}  // namespace tutti::spec
