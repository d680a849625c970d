// Covers: site_defaults.cc, curated_environments.cc.
#include <gmock/gmock.h>

#include <set>

#include "absl/strings/match.h"
#include "spec/site/site.h"
#include "spec/site/site_defaults.h"

namespace tutti::spec {
namespace {
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const EnvironmentRule& RuleOf(absl::string_view name) {
  static const EnvironmentRule kNone;
  const EnvironmentRule* const rule = Site::FindRule(BuiltInSite().environments, name);
  EXPECT_NE(rule, nullptr) << name;
  return rule == nullptr ? kNone : *rule;
}

TEST(CuratedEnvironmentsTest, ReadAsASitesTablesDo) {
  for (const absl::string_view table : {kSiteDefaults, kCuratedEnvironments}) {
    Site site;
    const absl::Status read = ReadSiteText(table, "table.yml", "/", site);
    EXPECT_TRUE(read.ok()) << read;
    EXPECT_FALSE(site.environments.empty());
  }
}

TEST(CuratedEnvironmentsTest, ComeBeforeTheNamesOfAnyVersion) {
  EXPECT_THAT(RuleOf("sklearn-1.5").location, StartsWith(std::string(kCuratedTable)));
  EXPECT_THAT(RuleOf("sklearn-1.5").packages, Contains("scikit-learn~=1.5.0"));
  EXPECT_EQ(RuleOf("sklearn-0.24-ubuntu18.04-py37-cpu").python, "3.8");
  EXPECT_EQ(RuleOf("sklearn-0.24.1-ubuntu18.04-py37-cpu-inference").packages.front(),
            "scikit-learn~=0.24.1");
  EXPECT_TRUE(IsInBuiltInTable(RuleOf("sklearn-1.5").location));
  EXPECT_FALSE(IsInBuiltInTable("site.yml:3"));
}

TEST(CuratedEnvironmentsTest, EachSaysAPythonAndNoPackageTwice) {
  Site site;
  ASSERT_TRUE(ReadSiteText(kCuratedEnvironments, "curated", "/", site).ok());
  for (const EnvironmentRule& rule : site.environments) {
    if (rule.kind != EnvironmentRule::Kind::kPackages || rule.packages.empty()) continue;
    EXPECT_FALSE(rule.python.empty()) << rule.location;
    std::set<std::string> seen;
    for (const std::string& package : rule.packages) {
      const std::string name = package.substr(0, package.find_first_of("~<>=! ["));
      EXPECT_TRUE(seen.insert(name).second) << rule.location << ": " << name << " twice";
    }
  }
}

TEST(CuratedEnvironmentsTest, NoPatternHidesALaterOne) {
  Site site;
  ASSERT_TRUE(ReadSiteText(kCuratedEnvironments, "curated", "/", site).ok());
  for (const EnvironmentRule& rule : site.environments) {
    EXPECT_EQ(Site::FindRule(site.environments, rule.pattern), &rule)
        << rule.location << ": " << rule.pattern << " is never reached";
  }
}

TEST(CuratedEnvironmentsTest, WhatDiffersFromTheImageIsSaid) {
  EXPECT_THAT(RuleOf("tensorflow-2.11-cuda11").differs, HasSubstr("without GPUs"));
}

// No script notices them; the page of the curated names says it once, for all lines.
TEST(CuratedEnvironmentsTest, NoLineWarnsOfWhatScriptsDoNotImport) {
  for (const EnvironmentRule& rule : BuiltInSite().environments) {
    for (const char* package : {"azureml-", "psutil", "torch-tb-profiler"}) {
      EXPECT_THAT(rule.differs, Not(HasSubstr(package))) << rule.location;
    }
  }
}

}  // namespace
}  // namespace tutti::spec
