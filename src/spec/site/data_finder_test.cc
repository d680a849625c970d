#include "spec/site/data_finder.h"

#include <gmock/gmock.h>

#include <array>
#include <string>
#include <vector>

#include "spec/file/job_file.h"

namespace tutti::spec {
namespace {

using ::testing::HasSubstr;

// A site where net:1, which is also "best", and net:2 are registered, and data of the name "both".
Site SiteWithModels() {
  Site site = BuiltInSite();
  EXPECT_TRUE(site.data_assets.Add({.name = "both", .type = "uri_folder", .path = "/data"}).ok());
  EXPECT_TRUE(site.data.Add("azureml:mapped:1", "/mapped").ok());
  site.find_model = [](const AssetReference& reference) -> absl::StatusOr<ModelHere> {
    if (reference.name != "net" && reference.name != "both") {
      return absl::NotFoundError("there is no model " + reference.name);
    }
    if (reference.version == "@best" || reference.version == "1") {
      return ModelHere{"1", "mlflow_model", "/trees/1"};
    }
    if (reference.version.empty() || reference.version == "2") {
      return ModelHere{"2", "mlflow_model", "/trees/2"};
    }
    return absl::NotFoundError("model net has no version 9, but versions 2, 1");
  };
  return site;
}

absl::StatusOr<Input> ReadModelInput(const std::string& input,
                                     const Site& site = SiteWithModels()) {
  const auto read = ReadJobFile("command: x\ncompute: local\ninputs: {m: " + input + "}\n",
                                "job.yml", "/project", site, ReadFromDisk);
  if (!read.ok()) return read.status();
  return read->spec.inputs.at("m");
}

TEST(DataFinder, FixesTheVersionOfAModel) {
  for (const auto& [path, version] :
       {std::pair("azureml:net:1", "1"),
        {"azureml:net@best", "1"},
        {"azureml:net@latest", "2"},
        {"azureml:net", "2"},
        {"azureml://registries/r/models/net/versions/1", "1"},
        {"azureml:/subscriptions/s/workspaces/w/models/net/versions/2", "2"}}) {
    const auto input = ReadModelInput(std::string("{type: custom_model, path: '") + path + "'}");
    ASSERT_TRUE(input.ok()) << path << input.status();
    EXPECT_EQ(input->type, "custom_model");
    EXPECT_EQ(input->path, std::string("/trees/") + version) << path;
    EXPECT_EQ(input->asset, std::string("azureml:net:") + version) << path;
  }
}

TEST(DataFinder, TakesTheTypeOfAModelWhereNoneIsSaid) {
  EXPECT_EQ(ReadModelInput("{path: 'azureml:net:1'}")->type, "mlflow_model");
  EXPECT_EQ(ReadModelInput("{type: uri_folder, path: 'azureml:net:1'}")->type, "uri_folder");
}

TEST(DataFinder, DataOfTheNameComeFirstUnlessAModelIsMeant) {
  EXPECT_EQ(ReadModelInput("{type: uri_folder, path: 'azureml:both:1'}")->path, "/data");
  EXPECT_EQ(ReadModelInput("{type: uri_folder, path: 'azureml:both:1'}")->asset, "azureml:both:1");
  EXPECT_EQ(ReadModelInput("{type: custom_model, path: 'azureml:both:1'}")->path, "/trees/1");
  EXPECT_EQ(ReadModelInput("{type: custom_model, path: 'azureml:mapped:1'}")->path, "/mapped");
  EXPECT_EQ(ReadModelInput("{type: custom_model, path: /a/model}")->path, "/a/model");
  EXPECT_EQ(ReadModelInput("{type: custom_model, path: /a/model}")->asset, "");
}

TEST(DataFinder, SaysWhichVersionsThereAreAndWhatToDo) {
  EXPECT_THAT(ReadModelInput("{type: custom_model, path: 'azureml:net:9'}").status().message(),
              HasSubstr("input \"m\": model net has no version 9, but versions 2, 1; register it "
                        "(tutti model register)"));
  EXPECT_THAT(ReadModelInput("{type: mlflow_model, path: 'azureml:none:1'}").status().message(),
              HasSubstr("there is no model none; register it"));
  EXPECT_THAT(ReadModelInput("{type: uri_folder, path: 'azureml:none:1'}").status().message(),
              HasSubstr("\"azureml:none:1\" is not on this machine"));
}

TEST(DataFinder, WithoutARegistryModelsAreAsOtherData) {
  EXPECT_THAT(ReadModelInput("{type: custom_model, path: 'azureml:net:1'}", BuiltInSite())
                  .status()
                  .message(),
              HasSubstr("\"azureml:net:1\" is not on this machine"));
}

TEST(DataFinder, APatternIsTheFolderAboveItsWildcardsAndWhatMatchesBelow) {
  Site site = BuiltInSite();
  site.jobs = "/jobs";
  EXPECT_TRUE(site.data.Add("azureml://datastores/x", "/copies/x").ok());
  EXPECT_TRUE(site.data.Add("https://e.org/sets", "/copies/sets").ok());
  site.datastores["share"].place = {
      .kind = StoreKind::kLocal, .path = "/mnt", .datastore = "share"};
  for (const auto& [address, path, pattern] : std::vector<std::array<std::string, 3>>{
           {"azureml://datastores/x/paths/dogs/**", "/copies/x/paths/dogs", "**"},
           {"azureml://datastores/x/paths/*/a?.png", "/copies/x/paths", "*/a?.png"},
           {"azureml://datastores/x/paths/a[1]/*.png/", "/copies/x/paths/a[1]", "*.png"},
           {"azureml://datastores/x/paths/dogs", "/copies/x/paths/dogs", ""},
           {"https://e.org/sets/a%20b/*/c%20d", "/copies/sets/a b", "*/c d"},
           {"https://e.org/sets/a?b=*", "/copies/sets/a", ""},
           {"azureml://datastores/share/paths/dogs/*", "/mnt/dogs", "*"},
           {"azureml://jobs/j/outputs/o/paths/*.pt", "/jobs/j/outputs/o", "*.pt"},
       }) {
    const auto here = FindHere(address, "uri_folder", "/base", site);
    ASSERT_TRUE(here.ok()) << address << here.status();
    EXPECT_EQ(here->path, path) << address;
    EXPECT_EQ(here->pattern, pattern) << address;
  }
  EXPECT_EQ(FindHere("./dogs/*", "uri_folder", "/base", site)->path, "/base/dogs/*")
      << "a file may be called so";
  EXPECT_TRUE(absl::IsNotFound(FindHere("s3://b/dogs/*", "uri_folder", "/base", site).status()));
}

TEST(DataFinder, APatternIsNeitherATableNorAFile) {
  Site site = BuiltInSite();
  EXPECT_TRUE(site.data.Add("azureml://datastores/x", "/copies").ok());
  const auto read = [&](const std::string& type) {
    return ReadModelInput("{type: " + type + ", path: 'azureml://datastores/x/paths/*'}", site);
  };
  EXPECT_EQ(read("uri_folder")->pattern, "*");
  EXPECT_EQ(read("custom_model")->pattern, "*");
  EXPECT_THAT(read("mltable").status().message(), HasSubstr("input \"m\": a table is one folder"));
  EXPECT_THAT(read("uri_file").status().message(), HasSubstr("stands for several files"));
}

}  // namespace
}  // namespace tutti::spec
