#include "spec/data_asset.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "spec/job_file.h"

namespace tutti::spec {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;

DataAsset Asset(std::string name, std::string version, std::string path) {
  DataAsset asset;
  asset.name = std::move(name);
  asset.version = std::move(version);
  asset.path = std::move(path);
  return asset;
}

std::string PathOf(const DataAssets& assets, absl::string_view address) {
  bool known = false;
  const auto asset = assets.Find(address, &known);
  return asset.ok() ? asset->path : std::string(asset.status().message());
}

TEST(DataAsset, IsReadFromAFileOfAzureMls) {
  const auto result = ReadDataFile(
      "$schema: https://azuremlschemas.azureedge.net/latest/data.schema.json\nname: iris\n"
      "version: 3\ndescription: flowers\ntags: {a: b}\ntype: uri_file\npath: sets/iris.csv\n",
      "data.yml", "/base");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->asset.name, "iris");
  EXPECT_EQ(result->asset.version, "3");
  EXPECT_EQ(result->asset.type, "uri_file");
  EXPECT_EQ(result->asset.path, "/base/sets/iris.csv");
  EXPECT_EQ(ReadDataFile("name: a\npath: wasbs://c@h/x\n", "d", "/b")->asset.path, "wasbs://c@h/x");
}

TEST(DataAsset, WhatIsWrongWithAFileIsSaidWithItsLine) {
  const auto result =
      ReadDataFile("name: a b\ntype: table\npathh: x\nproperties: {a: b}\n", "data.yml", "/base");
  EXPECT_THAT(
      std::string(result.status().message()),
      ::testing::AllOf(HasSubstr("data.yml:1: name must be of letters"), HasSubstr("data.yml:2: "),
                       HasSubstr("data.yml:3: unknown key "
                                 "\"pathh\" (did you mean"),
                       HasSubstr("data.yml:1: the key \"path\" is missing")));
}

TEST(DataAsset, VersionsAreFoundAndTheLastIsTheLatest) {
  DataAssets assets;
  ASSERT_TRUE(assets.Add(Asset("iris", "", "/a")).ok());
  ASSERT_TRUE(assets.Add(Asset("iris", "", "/b")).ok());
  EXPECT_EQ(assets.Add(Asset("iris", "beta", "/c"))->version, "beta");
  for (const char* latest : {"azureml:iris", "azureml:iris@latest", "azureml:iris:beta"}) {
    EXPECT_EQ(PathOf(assets, latest), "/c") << latest;
  }
  EXPECT_EQ(PathOf(assets, "azureml:iris:2"), "/b");
  EXPECT_EQ(PathOf(assets,
                   "azureml://subscriptions/s/resourcegroups/r/workspaces/w/data/iris/"
                   "versions/1"),
            "/a");
  EXPECT_EQ(PathOf(assets, "azureml:iris:9"), "data iris has no version 9, but 1, 2, beta");
  ASSERT_TRUE(assets.Remove("iris", "beta").ok());
  EXPECT_EQ(PathOf(assets, "azureml:iris"), "/b");
  EXPECT_TRUE(absl::IsNotFound(assets.Remove("iris", "beta")));
}

TEST(DataAsset, AVersionDoesNotChange) {
  DataAssets assets;
  ASSERT_TRUE(assets.Add(Asset("iris", "1", "/a")).ok());
  EXPECT_TRUE(assets.Add(Asset("iris", "1", "/a")).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(assets.Add(Asset("iris", "1", "/b")).status()));
}

TEST(DataAsset, IsKeptInTheHomeAndTakenByJobs) {
  const base::TemporaryDirectory home;
  DataAssets assets;
  DataAsset iris = Asset("iris", "1", "/sets/iris.csv");
  iris.type = "uri_file";
  ASSERT_TRUE(assets.Add(iris).ok());
  ASSERT_TRUE(assets.Add(Asset("far", "1", "wasbs://c@a.blob.core.windows.net/x.csv")).ok());
  ASSERT_TRUE(WriteDataAssets(home.path(), assets).ok());
  const auto site = ReadSite(home.path());
  ASSERT_TRUE(site.ok()) << site.status();
  const auto job = ReadJobFile(
      "command: x\ninputs:\n  a: {path: 'azureml:iris@latest'}\n"
      "  b: {type: uri_file, path: 'azureml:far:1'}\n",
      "job.yml", "/base", *site);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec.inputs.at("a").path, "/sets/iris.csv");
  EXPECT_EQ(job->spec.inputs.at("a").type, "uri_file");  // its own, where the job says none
  EXPECT_EQ(job->spec.inputs.at("b").path, "https://a.blob.core.windows.net/c/x.csv");
  EXPECT_THAT(std::string(ReadJobFile("command: x\ninputs:\n  a: {path: 'azureml:iris:2'}\n",
                                      "job.yml", "/base", *site)
                              .status()
                              .message()),
              HasSubstr("job.yml:3: input \"a\": data iris has no version 2, but 1"));
}

}  // namespace
}  // namespace tutti::spec
