// Covers: site_names.cc, slurm_compute.cc, site_defaults.cc.
#include "spec/site/site.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::spec {
namespace {
using ::testing::HasSubstr;

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

TEST_F(SiteTest, AVariableThatNoProcessCanBeGivenIsRefused) {
  const std::string text = absl::StrCat(
      "environments:\n  team:\n    variables:\n      A: 1\n      B: ", std::string(131072, 'x'),
      "\n");
  Write("site.yml", text.c_str());
  EXPECT_THAT(std::string(ReadSite(home_.path()).status().message()),
              HasSubstr("site.yml:5: variables: B has 131072 bytes; a process can be given"));
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

TEST_F(SiteTest, ContainersReachNothingUnlessTheSiteSaysSo) {
  EXPECT_TRUE(BuiltInSite().container_leave.empty());
  EXPECT_TRUE(ReadSite(home_.path())->container_leave.empty());
  Write("site.yml", "containers: {allow: [volume, device]}\n");
  EXPECT_EQ(ReadSite(home_.path())->container_leave, (std::set<std::string>{"device", "volume"}));
  Write("site.yml", "containers: {allow: []}\n");
  EXPECT_TRUE(ReadSite(home_.path())->container_leave.empty());
  Write("site.yml", "containers:\n  allow: [volumes]\n");
  EXPECT_THAT(std::string(ReadSite(home_.path()).status().message()),
              HasSubstr("site.yml:2: containers.allow: \"volumes\" is none of cap-add, device"));
}

TEST_F(SiteTest, WhoLeavesTheRefusalToAServiceReadsByAnyLeaveUnlessTheSiteSaysWhich) {
  EXPECT_EQ(ReadSite(home_.path(), AnyContainerLeave())->container_leave.size(),
            kContainerLeaves.size());
  Write("site.yml", "containers: {allow: [volume]}\n");
  EXPECT_EQ(ReadSite(home_.path(), AnyContainerLeave())->container_leave,
            (std::set<std::string>{"volume"}));
}

TEST_F(SiteTest, SaysWhereTheLogsOfAllJobsAreKeptAndInWhichLine) {
  Write("site.yml", "retention: {}\nkeep_logs: azureml://datastores/runs/paths/logs\n");
  EXPECT_EQ(ReadSite(home_.path())->keep_logs, "azureml://datastores/runs/paths/logs");
  EXPECT_EQ(ReadSite(home_.path())->keep_logs_location, (home_.path() / "site.yml:2").string());
}

TEST_F(SiteTest, SaysWhereTheKeyOfTheSecretsIs) {
  EXPECT_EQ(ReadSite(home_.path())->secret_key_file, "");
  Write("site.yml", "secret_key_file: /etc/tutti/secrets.key\n");
  EXPECT_EQ(ReadSite(home_.path())->secret_key_file, "/etc/tutti/secrets.key");
  Write("site.yml", "secret_key_file: keys/one\n");
  EXPECT_EQ(ReadSite(home_.path())->secret_key_file, home_.path() / "keys/one");
}

TEST(SecretKey, IsTheSitesOrSystemdsOrInTheFolder) {
  const base::TemporaryDirectory credentials;
  const std::filesystem::path given = credentials.path() / "tutti.secrets.key";
  ::setenv("CREDENTIALS_DIRECTORY", credentials.path().c_str(), 1);
  EXPECT_EQ(SecretKeyFile({}, "/home"), "/home/secrets.key");
  ASSERT_TRUE(base::WriteFileAtomic(given, "x").ok());
  EXPECT_EQ(SecretKeyFile({}, "/home"), given);
  Site site;
  site.secret_key_file = "/etc/key";
  EXPECT_EQ(SecretKeyFile(site, "/home"), "/etc/key");
  EXPECT_TRUE(IsCredential(given));
  EXPECT_FALSE(IsCredential("/home/secrets.key"));
  ::unsetenv("CREDENTIALS_DIRECTORY");
  EXPECT_EQ(SecretKeyFile({}, "/home"), "/home/secrets.key");
  EXPECT_FALSE(IsCredential(given));
  EXPECT_FALSE(IsCredential("tutti.secrets.key"));
}

TEST_F(SiteTest, SaysHowNodesAreLookedAt) {
  EXPECT_EQ(ReadSite(home_.path())->health_check.command, "");
  EXPECT_EQ(ReadSite(home_.path())->health_check.interval_seconds, 300);
  Write("site.yml", "health_check: /opt/check --fast\n");
  EXPECT_EQ(ReadSite(home_.path())->health_check.command, "/opt/check --fast");
  Write("site.yml",
        "health_check: {command: /opt/check, timeout: 5, interval: 30, links: [eth0, mlx5_0:1]}\n");
  const HealthCheck check = ReadSite(home_.path())->health_check;
  EXPECT_EQ(check.command, "/opt/check");
  EXPECT_EQ(check.timeout_seconds, 5);
  EXPECT_EQ(check.interval_seconds, 30);
  EXPECT_EQ(check.links, (std::vector<std::string>{"eth0", "mlx5_0:1"}));
  Write("site.yml", "health_check:\n  links: [../../etc]\n  timeout: 0\n");
  const std::string message(ReadSite(home_.path()).status().message());
  EXPECT_THAT(message, HasSubstr("site.yml:2: health_check.links: \"../../etc\" names no link"));
  EXPECT_THAT(message, HasSubstr("site.yml:3: "));
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
