#include "spec/site/site.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/file.h"
#include "spec/site/site_names.h"
#include "spec/types/node_folder.h"

namespace tutti::spec {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class SiteTest : public ::testing::Test {
 protected:
  void Write(const char* name, const char* text) {
    ASSERT_TRUE(base::WriteFileAtomic(home_.path() / name, text).ok());
  }
  base::TemporaryDirectory home_;
};

TEST_F(SiteTest, WithoutFilesItIsTheBuiltInTables) {
  const auto site = ReadSite(home_.path());
  ASSERT_TRUE(site.ok()) << site.status();
  EXPECT_EQ(site->environments.size(), BuiltInSite().environments.size());
  EXPECT_EQ(site->conda_packages.at("pytorch"), "torch");
  EXPECT_EQ(Site::FindRule(site->images, "Python:3.9")->kind, EnvironmentRule::Kind::kPackages);
  EXPECT_EQ(Site::FindRule(site->images, "unknown/image"), nullptr);
}

TEST_F(SiteTest, ListsTheNamesThatItGivesWithTheirPlace) {
  Write("site.yml",
        "environments:\n  team: {python: '3.11', packages: [torch, pandas]}\n"
        "  sklearn-*: {image: registry.example/sklearn}\n"
        "components:\n  train:2: parts/train.yml\n  clean: clean.yml\n");
  const auto site = ReadSite(home_.path());
  ASSERT_TRUE(site.ok()) << site.status();
  const auto environments = SiteNames(*site, AssetKind::kEnvironment);
  ASSERT_EQ(environments.size(), BuiltInSite().environments.size() + 1) << "one hides another";
  EXPECT_EQ(environments[0].asset.name, "team");
  EXPECT_EQ(environments[0].asset.type, "packages");
  EXPECT_EQ(environments[0].asset.description, "Python 3.11, torch, pandas");
  EXPECT_EQ(environments[0].from, "site.yml:2");
  EXPECT_EQ(environments[1].asset.path, "registry.example/sklearn");
  const auto host = std::find_if(environments.begin(), environments.end(),
                                 [](const SiteName& name) { return name.asset.name == "host"; });
  ASSERT_NE(host, environments.end());
  EXPECT_EQ(host->asset.type, "host");
  EXPECT_EQ(host->from, "built-in table");
  const auto components = SiteNames(*site, AssetKind::kComponent);
  ASSERT_EQ(components.size(), 2u);
  EXPECT_EQ(components[0].asset.name, "clean");
  EXPECT_EQ(components[1].asset.version, "2");
  EXPECT_EQ(components[1].asset.path, (home_.path() / "parts/train.yml").string());
  EXPECT_TRUE(SiteNames(*site, AssetKind::kData).empty());
}

TEST_F(SiteTest, ALineOfASiteSetsVariablesAndSaysWhatDiffers) {
  Write("site.yml",
        "environments:\n  team: {packages: [tf], variables: {A: 1}, differs: no GPU}\n"
        "images:\n  mine/python*: {python: named, packages: []}\n");
  const auto site = ReadSite(home_.path());
  ASSERT_TRUE(site.ok()) << site.status();
  const EnvironmentRule* team = Site::FindRule(site->environments, "team");
  EXPECT_EQ(team->variables.at("A"), "1");
  EXPECT_EQ(team->differs, "no GPU");
  EXPECT_EQ(Site::FindRule(site->images, "mine/python:3.9")->python, kNamedPython);
}

TEST_F(SiteTest, FindsTheNameThatAJobFileMeans) {
  Write("site.yml", "components: {train:2: a.yml, clean: b.yml}\n");
  const auto site = ReadSite(home_.path());
  ASSERT_TRUE(site.ok()) << site.status();
  const auto curated = FindSiteName(*site, AssetKind::kEnvironment, {"AzureML-sklearn-1.5", "3"});
  ASSERT_TRUE(curated.has_value());
  EXPECT_EQ(curated->asset.name, "sklearn-1.5");
  EXPECT_FALSE(FindSiteName(*site, AssetKind::kEnvironment, {"nothing", ""}).has_value());
  EXPECT_TRUE(FindSiteName(*site, AssetKind::kComponent, {"train", "2"}).has_value());
  EXPECT_FALSE(FindSiteName(*site, AssetKind::kComponent, {"train", "3"}).has_value());
  EXPECT_TRUE(FindSiteName(*site, AssetKind::kComponent, {"clean", "7"}).has_value());
}

TEST_F(SiteTest, APythonThatTheNameSaysIsToldAsThat) {
  const Site& site = BuiltInSite();
  const auto shown = FindSiteName(site, AssetKind::kEnvironment, {"minimal-py39", ""});
  ASSERT_TRUE(shown.has_value());
  EXPECT_EQ(shown->asset.description, "Python 3.9");
  const auto any = FindSiteName(site, AssetKind::kEnvironment, {"minimal-cpu", ""});
  ASSERT_TRUE(any.has_value());
  EXPECT_EQ(any->asset.description, "Python");
  std::vector<std::string> listed;
  for (const SiteName& name : SiteNames(site, AssetKind::kEnvironment)) {
    if (name.asset.name == "minimal-*") listed.push_back(name.asset.description);
  }
  EXPECT_THAT(listed, ElementsAre("the Python of its name"));
}

TEST_F(SiteTest, AComputeMayBeASlurmCluster) {
  Write("site.yml",
        "computes:\n  HPC: {type: slurm, folder: ./shared, partition: gpu, gres: 'gpu:4',\n"
        "        cpus_per_node: 16, exclusive: true, options: [--mail-type=END],\n"
        "        priority_qos: {high: urgent}}\n");
  const auto site = ReadSite(home_.path());
  ASSERT_TRUE(site.ok()) << site.status();
  EXPECT_EQ(site->computes.at("hpc"), "hpc");
  const SlurmCompute& hpc = site->slurm_computes.at("hpc");
  EXPECT_EQ(hpc.folder, (home_.path() / "shared").string());
  EXPECT_EQ(hpc.partition, "gpu");
  EXPECT_EQ(hpc.cpus_per_node, 16);
  EXPECT_EQ(hpc.exclusive, true);
  EXPECT_EQ(hpc.options, std::vector<std::string>{"--mail-type=END"});
  EXPECT_EQ(hpc.priority_qos.at("high"), "urgent");
}

TEST_F(SiteTest, AClustersFolderMayBeOnEachNode) {
  Write("site.yml", "computes: {apart: {type: slurm, folder: 'node:/tmp'}}\n");
  const auto site = ReadSite(home_.path());
  ASSERT_TRUE(site.ok()) << site.status();
  EXPECT_EQ(NodeFolder(site->slurm_computes.at("apart").folder), "/tmp");
  EXPECT_EQ(NodeFolder("/shared"), std::nullopt);
  Write("site.yml", "computes:\n  apart: {type: slurm, folder: 'node:tmp'}\n");
  EXPECT_THAT(std::string(ReadSite(home_.path()).status().message()),
              HasSubstr("site.yml:2: node: is followed by a path on the nodes"));
}

TEST_F(SiteTest, AClusterSaysHowItsNodesReachTheService) {
  Write("site.yml",
        "computes:\n  near: {type: slurm, folder: /x}\n  far: {type: slurm, folder: /y, reach: "
        "folder}\n"
        "  open: {type: slurm, folder: /z, reach: service}\n");
  const auto site = ReadSite(home_.path());
  ASSERT_TRUE(site.ok()) << site.status();
  EXPECT_EQ(site->slurm_computes.at("near").reach, Reach::kUnsaid);
  EXPECT_EQ(site->slurm_computes.at("far").reach, Reach::kFolder);
  EXPECT_EQ(site->slurm_computes.at("open").reach, Reach::kService);
  Write("site.yml",
        "computes:\n  a: {type: slurm, folder: 'node:/tmp', reach: folder}\n"
        "  b: {type: slurm, folder: /x, reach: pigeon}\n");
  const std::string error(ReadSite(home_.path()).status().message());
  EXPECT_THAT(error, HasSubstr("site.yml:2: reach: folder needs a folder that the nodes share"));
  EXPECT_THAT(error, HasSubstr("site.yml:3: "));
}

TEST_F(SiteTest, OptionsThatAreTuttisAreRefusedAlsoWhereTheyAreCutShort) {
  const auto error_of = [&](const std::string& option) {
    const std::string text =
        "computes:\n  a: {type: slurm, folder: /x, options: ['" + option + "']}\n";
    Write("site.yml", text.c_str());
    return std::string(ReadSite(home_.path()).status().message());
  };
  for (const char* option :
       {"--ar=1-2", "--array=1-2", "--wait", "--wai", "--help", "--he", "--test-only", "--te",
        "--out=x", "--version", "--usage", "--job-name=x", "--job=x"}) {
    EXPECT_THAT(error_of(option), HasSubstr("is set by tutti")) << option;
  }
  EXPECT_THAT(error_of("--cpus-per-task=16"), HasSubstr("is set by tutti: write cpus_per_node"));
  for (const char* option :
       {"--nodelist=n1", "--wait-all-nodes=1", "--wckey=k", "--hint=compute", "--cpus-per-gpu=4",
        "--no-requeue", "--account=a", "--use-min-nodes"}) {
    EXPECT_EQ(error_of(option), "") << option;
  }
}

TEST_F(SiteTest, NoTwoClustersShareAFolder) {
  Write(
      "site.yml",
      "computes:\n  a: {type: slurm, folder: /x}\n  b: {type: slurm, folder: /x/, partition: gpu}\n"
      "  c: {type: slurm, folder: 'node:/tmp'}\n  d: {type: slurm, folder: 'node:/tmp'}\n");
  const std::string error(ReadSite(home_.path()).status().message());
  EXPECT_THAT(error, HasSubstr("site.yml:3: compute \"b\" has the folder of \"a\""));
  EXPECT_THAT(error, Not(HasSubstr("\"d\"")));
}

TEST_F(SiteTest, AClustersMistakesAreNamedByLine) {
  Write("site.yml",
        "computes:\n  hpc: {type: slurm, partiton: gpu}\n  local: {type: slurm, folder: /x}\n"
        "  other: {type: slurm, folder: /x, options: [-n4]}\n"
        "  more: {type: slurm, folder: /y, priority_qos: {hihg: urgent}}\n");
  const std::string error(ReadSite(home_.path()).status().message());
  EXPECT_THAT(error, HasSubstr("site.yml:2: compute \"hpc\" has no folder"));
  EXPECT_THAT(error, HasSubstr("partiton"));
  EXPECT_THAT(error, HasSubstr("site.yml:3: \"local\" means this machine's nodes"));
  EXPECT_THAT(error, HasSubstr("site.yml:4: \"-n4\" is no option of sbatch"));
  EXPECT_THAT(error, HasSubstr("site.yml:5: priority_qos: \"hihg\" is no priority"));
}

TEST_F(SiteTest, ASitesOwnTableComesFirst) {
  Write("site.yml",
        "environments:\n  sklearn-*: host\n  my-env: {python: '3.9', packages: [numpy]}\n"
        "images:\n  my.acr.io/*: {conda_file: conda.yml}\n"
        "conda_packages: {pytorch: mytorch}\ncomputes: {cpu-cluster: local}\n"
        "data: {'https://e.org/sets': ./sets}\n");
  const auto site = ReadSite(home_.path());
  ASSERT_TRUE(site.ok()) << site.status();
  EXPECT_EQ(Site::FindRule(site->environments, "sklearn-1.5")->kind, EnvironmentRule::Kind::kHost);
  EXPECT_EQ(Site::FindRule(site->environments, "my-env")->python, "3.9");
  EXPECT_EQ(Site::FindRule(site->images, "my.acr.io/x:1")->conda_file,
            (home_.path() / "conda.yml").string());
  EXPECT_EQ(site->conda_packages.at("pytorch"), "mytorch");
  EXPECT_EQ(site->computes.at("cpu-cluster"), "local");
  EXPECT_EQ(*site->data.Find("https://e.org/sets/a"), (home_.path() / "sets/a").string());
}

TEST_F(SiteTest, WhatTheCommandMappedIsWrittenReadAndFirst) {
  Write("site.yml", "data: {'https://e.org/a': /site, 'https://e.org/b': /site}\n");
  DataMap map;
  ASSERT_TRUE(map.Add("https://e.org/a", "/with \"quotes\" and \\").ok());
  ASSERT_TRUE(WriteDataMap(home_.path(), map).ok());
  const auto site = ReadSite(home_.path());
  ASSERT_TRUE(site.ok()) << site.status();
  EXPECT_EQ(*site->data.Find("https://e.org/a"), "/with \"quotes\" and \\");
  EXPECT_EQ(*site->data.Find("https://e.org/b"), "/site");
  EXPECT_EQ(ReadDataMap(home_.path())->entries().size(), 1u);
  ASSERT_TRUE(WriteDataMap(home_.path(), DataMap()).ok());
  EXPECT_TRUE(ReadDataMap(home_.path())->entries().empty());
}

TEST_F(SiteTest, FaultsNameFileAndLine) {
  Write("site.yml", "environments:\n  a: {package: [x]}\ncomputes: {b: far}\ndata: {x: /y}\n");
  const std::string message(ReadSite(home_.path()).status().message());
  EXPECT_THAT(message,
              HasSubstr("site.yml:2: unknown key \"package\" (did you mean \"packages\"?)"));
  EXPECT_THAT(message, HasSubstr("site.yml:3: b must be one of local"));
  EXPECT_THAT(message, HasSubstr("site.yml:4: \"x\" is no address"));
}

TEST_F(SiteTest, ManyStarsAreMatchedSoon) {
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "*a";
  const std::vector<EnvironmentRule> rules = {{.pattern = pattern + "b"}};
  EXPECT_EQ(Site::FindRule(rules, std::string(5000, 'a')), nullptr);
}

}  // namespace
}  // namespace tutti::spec
