// Covers: home_list.cc, spec/file/asset_file.cc, asset_head.h, spec/site/read_context.h.
#include "spec/data/asset.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "spec/file/asset_file.h"
#include "spec/file/job_file.h"

namespace tutti::spec {
namespace {
namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Asset Made(std::string name, std::string version, std::string path) {
  Asset asset;
  asset.name = std::move(name);
  asset.version = std::move(version);
  asset.type = "uri_folder";
  asset.path = std::move(path);
  return asset;
}

std::string PathOf(const Assets& assets, absl::string_view address) {
  bool known = false;
  const auto asset = assets.Find(ReferenceOf(assets.kind(), address), &known);
  return asset.ok() ? asset->path : std::string(asset.status().message());
}

// A file `file` of /base, beside others below /base.
absl::StatusOr<AssetFile> ReadFrom(AssetKind kind, const std::string& file,
                                   const std::map<std::string, std::string>& files,
                                   const Site& site = BuiltInSite()) {
  const ReadFileFunction read = [&](const fs::path& path) -> absl::StatusOr<std::string> {
    const auto found = files.find(path.lexically_normal().lexically_relative("/base").string());
    if (found == files.end()) return absl::NotFoundError(path.string() + " does not exist");
    return found->second;
  };
  return ReadAssetFile(kind, file, "/base", site, read);
}

absl::StatusOr<AssetFile> ReadData(const std::string& text) {
  return ReadFrom(AssetKind::kData, "data.yml", {{"data.yml", text}});
}

std::string Error(const absl::StatusOr<AssetFile>& file) {
  return std::string(file.status().message());
}

TEST(Asset, DataAreReadFromAFileOfAzureMls) {
  const auto result = ReadData(
      "$schema: https://azuremlschemas.azureedge.net/latest/data.schema.json\nname: iris\n"
      "version: 3\ndescription: flowers\ntags: {a: b}\ntype: uri_file\npath: sets/iris.csv\n");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->asset.name, "iris");
  EXPECT_EQ(result->asset.version, "3");
  EXPECT_EQ(result->asset.type, "uri_file");
  EXPECT_EQ(result->asset.path, "/base/sets/iris.csv");
  EXPECT_THAT(result->parts, IsEmpty());
  EXPECT_EQ(ReadData("name: a\npath: wasbs://c@h/x\n")->asset.path, "wasbs://c@h/x");
}

TEST(Asset, WhatIsWrongWithAFileIsSaidWithItsLine) {
  EXPECT_THAT(
      Error(ReadData("name: a/b\ntype: table\npathh: x\nproperties: {a: b}\n")),
      ::testing::AllOf(HasSubstr("data.yml:1: name must be of letters"), HasSubstr("data.yml:2: "),
                       HasSubstr("data.yml:3: unknown key "
                                 "\"pathh\" (did you mean"),
                       HasSubstr("data.yml:1: the key \"path\" is missing")));
  EXPECT_THAT(Error(ReadFrom(AssetKind::kComponent, "c.yml", {})), HasSubstr("does not exist"));
}

TEST(Asset, AnEnvironmentBringsTheFilesThatItReads) {
  const auto result = ReadFrom(
      AssetKind::kEnvironment, "env/env.yml",
      {{"env/env.yml", "name: e\nversion: 2\ndescription: d\ntags: {a: b}\nconda_file: c.yml\n"},
       {"env/c.yml", "dependencies: [pip, {pip: [-r ../more.txt]}]\n"},
       {"more.txt", "./wheels/a.whl\nnumpy\n--find-links wheels\n"}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->asset.name, "e");
  EXPECT_EQ(result->asset.version, "2");
  EXPECT_EQ(result->asset.type, "conda_file");
  EXPECT_EQ(result->asset.tags.at("a"), "b");
  EXPECT_THAT(result->parts, ElementsAre("/base/env/env.yml", "/base/env/c.yml", "/base/more.txt",
                                         "/base/wheels/a.whl", "/base/wheels"));
  EXPECT_THAT(Error(ReadFrom(AssetKind::kEnvironment, "e.yml",
                             {{"e.yml", "name: e\nconda_file: gone.yml\n"}})),
              HasSubstr("e.yml:2: conda_file: /base/gone.yml does not exist"));
  EXPECT_THAT(Error(ReadFrom(AssetKind::kEnvironment, "e.yml",
                             {{"e.yml", "name: e\nimage: a\nverson: 1\n"}})),
              HasSubstr("e.yml:3: unknown key \"verson\" (did you mean \"version\"?)"));
}

TEST(Asset, AnEnvironmentBringsTheFolderOfItsBuildAlsoWhereNothingIsBuilt) {
  for (const char* image : {"python", "registry.example/team/train:3"}) {
    const auto result = ReadFrom(
        AssetKind::kEnvironment, "env.yml",
        {{"env.yml", "name: e\nbuild: {path: docker}\n"},
         {"docker/Dockerfile", absl::StrCat("FROM ", image, "\nADD ./topo.xml x.txt /opt/\n")}});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(result->parts, ElementsAre("/base/env.yml", "/base/docker/Dockerfile"));
    EXPECT_THAT(result->builds, ElementsAre("/base/docker"));
  }
}

TEST(Asset, AComponentBringsItsCodeAndLeavesItsInputsOpen) {
  const std::string train =
      "name: train\nversion: 1\ntype: command\ncode: ../src\ncommand: x ${{inputs.data}} "
      "${{inputs.rate}}\ninputs:\n  data: {type: uri_folder, optional: false}\n  rate: {type: "
      "number, default: 1}\n"
      "environment: host\nadditional_includes: [../shared]\n";
  const auto command = ReadFrom(AssetKind::kComponent, "train.yml", {{"train.yml", train}});
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_EQ(command->asset.type, "command");
  EXPECT_THAT(command->parts, ElementsAre("/base/train.yml", "/src", "/shared"));
  const auto pipeline =
      ReadFrom(AssetKind::kComponent, "all.yml",
               {{"all.yml",
                 "name: all\ntype: pipeline\ninputs: {data: {type: uri_folder}}\njobs:\n"
                 "  a: {component: ./train.yml, inputs: {data: \"${{parent.inputs.data}}\"}}\n"},
                {"train.yml", train}});
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  EXPECT_EQ(pipeline->asset.type, "pipeline");
  EXPECT_THAT(pipeline->parts, ::testing::UnorderedElementsAre("/base/all.yml", "/base/train.yml",
                                                               "/src", "/shared"));
  EXPECT_THAT(
      Error(ReadFrom(AssetKind::kComponent, "c.yml",
                     {{"c.yml",
                       "name: c\ncommand: x ${{inputs.y}}\ncode: .\n"
                       "inputs:\n  n: {type: integer, default: two}\n"}})),
      ::testing::AllOf(HasSubstr("c.yml:2: "),
                       HasSubstr("c.yml:5: input \"n\" is \"two\", which is no whole number")));
}

TEST(Asset, WhatAStepOfAComponentLacksIsSaidWithTheComponentsFile) {
  const base::TemporaryDirectory folder;
  const std::string file = (folder.path() / "p.yml").string();
  ASSERT_TRUE(base::WriteFileAtomic(file,
                                    "name: p\njobs:\n  a:\n    command: x\n    code: ./gone\n"
                                    "    environment: host\n")
                  .ok());
  EXPECT_EQ(Error(ReadAssetFile(AssetKind::kComponent, file, BuiltInSite())),
            absl::StrCat(file, ":5: code: ", folder.path().string(), "/gone does not exist"));
}

TEST(Asset, DataMustBeOfTheirType) {
  const base::TemporaryDirectory folder;
  const std::string root = folder.path().string();
  const auto error = [&](absl::string_view type, absl::string_view path) {
    EXPECT_TRUE(base::WriteFileAtomic(root + "/d.yml",
                                      absl::StrCat("name: d\ntype: ", type, "\npath: ", path, "\n"))
                    .ok());
    return Error(ReadAssetFile(AssetKind::kData, root + "/d.yml", BuiltInSite()));
  };
  EXPECT_EQ(error("uri_file", "."),
            absl::StrCat(root, "/d.yml:3: path: ", root, " is a folder; its type is uri_folder"));
  EXPECT_THAT(error("mltable", "."), HasSubstr("d.yml:3: path: "));
  EXPECT_THAT(error("mltable", "."), HasSubstr("holds no file MLTable"));
  EXPECT_EQ(error("uri_folder", "gone"),
            absl::StrCat(root, "/d.yml:3: path: ", root, "/gone does not exist"));
  EXPECT_EQ(error("uri_folder", "."), "");
}

TEST(Asset, WhatAPipelineComponentLeavesToItsInputsMayBeAnything) {
  const std::string pipeline = R"(name: p
type: pipeline
inputs:
  where: {type: string}
  nodes: {type: integer}
  seconds: {type: integer}
  goal: {type: string, enum: [maximize, minimize]}
  data: {type: uri_folder}
jobs:
  a:
    command: x ${{inputs.data}}
    environment: host
    compute: ${{parent.inputs.where}}
    inputs: {data: "${{parent.inputs.data}}"}
    resources: {instance_count: "${{parent.inputs.nodes}}"}
    distribution: {type: mpi, process_count_per_instance: "${{parent.inputs.nodes}}"}
    limits: {timeout: "${{parent.inputs.seconds}}"}
  b:
    type: sweep
    trial: {command: "x ${{search_space.c}}", environment: host}
    search_space: {c: {type: uniform, min_value: 0, max_value: 1}}
    sampling_algorithm: random
    objective: {goal: "${{parent.inputs.goal}}", primary_metric: f1}
    limits: {max_total_trials: "${{parent.inputs.nodes}}"}
)";
  const auto read = ReadFrom(AssetKind::kComponent, "p.yml", {{"p.yml", pipeline}});
  EXPECT_TRUE(read.ok()) << read.status();
  const std::string outer =
      "name: o\ninputs: {w: {type: string}, d: {type: uri_folder}}\njobs:\n  p:\n"
      "    component: ./p.yml\n    inputs: {where: '${{parent.inputs.w}}', nodes: 2, seconds: 9, "
      "goal: minimize, data: '${{parent.inputs.d}}'}\n";
  const auto nested =
      ReadFrom(AssetKind::kComponent, "o.yml", {{"o.yml", outer}, {"p.yml", pipeline}});
  EXPECT_TRUE(nested.ok()) << nested.status();
  EXPECT_EQ(Error(ReadFrom(AssetKind::kComponent, "d.yml",
                           {{"d.yml",
                             "name: d\ninputs: {data: {type: uri_folder}}\njobs:\n"
                             "  a: {command: x, compute: '${{parent.inputs.data}}'}\n"}})),
            "d.yml:4: compute is ${{parent.inputs.data}}, which must be an input of the pipeline "
            "that has a plain value");
}

TEST(Asset, AFileOfAnotherKindIsToldWithTheRightCommand) {
  const std::map<std::string, std::string> kFiles = {
      {"data", "name: d\ntype: uri_file\npath: x\n"},
      {"environment", "name: e\nimage: python\n"},
      {"component", "name: c\nversion: 1\ncommand: x\n"},
      {"compute", "name: k\ntype: amlcompute\n"},
      {"job", "name: j\ncommand: x\ncompute: local\n"}};
  for (const AssetKind kind : {AssetKind::kData, AssetKind::kEnvironment, AssetKind::kComponent}) {
    for (const auto& [other, text] : kFiles) {
      if (other == AssetKindName(kind)) continue;
      EXPECT_THAT(Error(ReadFrom(kind, "f.yml", {{"f.yml", text}})),
                  ::testing::AllOf(HasSubstr("this is a file of kind " + other +
                                             ", where one of "
                                             "kind " +
                                             std::string(AssetKindName(kind)) + " is expected"),
                                   HasSubstr("`tutti " + other + " create --file f.yml`"),
                                   ::testing::Not(HasSubstr("\n"))));
    }
  }
}

TEST(Asset, VersionsAreFoundAndTheLastIsTheLatest) {
  Assets assets(AssetKind::kData);
  ASSERT_TRUE(assets.Add(Made("iris", "", "/a")).ok());
  ASSERT_TRUE(assets.Add(Made("iris", "", "/b")).ok());
  EXPECT_EQ(assets.Add(Made("iris", "beta", "/c"))->version, "beta");
  for (const char* latest : {"azureml:iris", "azureml:iris@latest", "azureml:iris:beta"}) {
    EXPECT_EQ(PathOf(assets, latest), "/c") << latest;
  }
  EXPECT_EQ(PathOf(assets, "azureml:iris@lates"),
            "data iris has no label \"lates\" (did you mean \"latest\"?)");
  EXPECT_EQ(PathOf(assets, "azureml:iris@"), "data iris has no label \"\", but latest");
  EXPECT_EQ(PathOf(assets, "azureml://registries/r/data/iris/labels/prod"),
            "data iris has no label \"prod\", but latest");
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

TEST(Asset, AVersionDoesNotChange) {
  Assets assets(AssetKind::kData);
  ASSERT_TRUE(assets.Add(Made("iris", "1", "/a")).ok());
  EXPECT_TRUE(assets.Add(Made("iris", "1", "/a")).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(assets.Add(Made("iris", "1", "/b")).status()));
  Asset kept = Made("kept", "1", "/home/kept");
  kept.digest = "x";
  ASSERT_TRUE(assets.Add(kept).ok());
  kept.path = "/elsewhere";  // the same files, from another folder
  kept.description = "better words";
  EXPECT_EQ(assets.Add(kept)->path, "/home/kept");
  EXPECT_EQ(assets.assets().at("kept").front().description, "better words");
  kept.digest = "y";
  EXPECT_THAT(std::string(assets.Add(kept).status().message()),
              HasSubstr("data kept:1 is there with other files, and a version does not change"));
}

TEST(Asset, IsKeptInTheHomeAndTakenByJobs) {
  const base::TemporaryDirectory home;
  Assets assets(AssetKind::kData);
  Asset iris = Made("iris", "1", "/sets/iris.csv");
  iris.type = "uri_file";
  ASSERT_TRUE(assets.Add(iris).ok());
  ASSERT_TRUE(assets.Add(Made("far", "1", "wasbs://c@a.blob.core.windows.net/x.csv")).ok());
  ASSERT_TRUE(WriteAssets(home.path(), assets).ok());
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

TEST(Asset, ReferencesAreUnderstoodInAllTheirForms) {
  const auto name_and_version = [](AssetKind kind, absl::string_view written) {
    const AssetReference reference = ReferenceOf(kind, written);
    return reference.name + "|" + reference.version;
  };
  const AssetKind component = AssetKind::kComponent;
  EXPECT_EQ(name_and_version(component, "azureml:train:1"), "train|1");
  EXPECT_EQ(name_and_version(component, "train@latest"), "train|");
  EXPECT_EQ(name_and_version(component, "azureml://registries/r/components/train/versions/2"),
            "train|2");
  EXPECT_EQ(name_and_version(component, "azureml://registries/r/components/train/labels/latest"),
            "train|");
  const std::string workspace =
      "/subscriptions/s/resourceGroups/data/providers/Microsoft.MachineLearningServices/workspaces/"
      "w";
  EXPECT_EQ(name_and_version(component, "azureml:" + workspace + "/components/train/versions/2"),
            "train|2");
  EXPECT_EQ(name_and_version(AssetKind::kData, workspace + "/data/data/labels/latest"), "data|");
  EXPECT_EQ(NameOfId("azureml:" + workspace + "/computes/cpu-cluster"), "azureml:cpu-cluster");
  EXPECT_EQ(NameOfId(workspace + "/jobs/j"), workspace + "/jobs/j");
  EXPECT_EQ(NameOfId("/data/x"), "/data/x");
  for (const std::string other : {"azureml://registries/r/models/train/versions/2",
                                  "azureml://datastores/d/components/train", "azureml://"}) {
    EXPECT_EQ(name_and_version(component, other), other + "|");
  }
}

TEST(Asset, EnvironmentsAndComponentsByNameComeBeforeTheSitesTables) {
  const base::TemporaryDirectory home;
  const auto keep = [&](AssetKind kind, const std::string& name, const std::string& text) {
    const fs::path file = home.path() / (name + ".yml");
    ASSERT_TRUE(base::WriteFileAtomic(file, text).ok());
    Assets assets(kind);
    ASSERT_TRUE(assets.Add(Made(name, "1", file.string())).ok());
    ASSERT_TRUE(WriteAssets(home.path(), assets).ok());
  };
  keep(AssetKind::kEnvironment, "sklearn-1.5", "name: x\nconda_file: {dependencies: [numpy]}\n");
  keep(AssetKind::kComponent, "train", "name: x\ncommand: echo hi\nenvironment: host\n");
  ASSERT_TRUE(
      base::WriteFileAtomic(home.path() / "site.yml", "components: {train: ./gone.yml}\n").ok());
  const auto site = ReadSite(home.path());
  ASSERT_TRUE(site.ok()) << site.status();
  const auto read = [&](const std::string& text) {
    return ReadJobFile(text, "job.yml", "/base", *site);
  };
  const auto job = read("command: x\nenvironment: azureml:sklearn-1.5:1\n");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec.environment.name, "sklearn-1.5");
  EXPECT_EQ(job->spec.environment.packages.front().text, "numpy");
  // Another version is as it was without the file.
  EXPECT_EQ(read("command: x\nenvironment: azureml:sklearn-1.5:9\n")
                ->spec.environment.packages.front()
                .text,
            "scikit-learn~=1.5.0");
  const auto pipeline = read("jobs:\n  a: {component: 'azureml:train@latest'}\n");
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  EXPECT_EQ(pipeline->spec.steps.front().job.command, "echo hi");
  EXPECT_THAT(
      std::string(read("command: x\nenvironment: azureml:sclearn-1.5:1\n").status().message()),
      HasSubstr("(did you mean \"sklearn-1.5\"?); make it known by its file: tutti "
                "environment create --file FILE"));
}

}  // namespace
}  // namespace tutti::spec
