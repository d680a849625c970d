#include "spec/site/site_names.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/file.h"
#include "spec/site/site.h"

namespace tutti::spec {
namespace {
using ::testing::ElementsAre;

class SiteNamesTest : public ::testing::Test {
 protected:
  void Write(const char* name, const char* text) {
    ASSERT_TRUE(base::WriteFileAtomic(home_.path() / name, text).ok());
  }
  base::TemporaryDirectory home_;
};

TEST_F(SiteNamesTest, ListsTheNamesThatItGivesWithTheirPlace) {
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

TEST_F(SiteNamesTest, FindsTheNameThatAJobFileMeans) {
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

TEST_F(SiteNamesTest, APythonThatTheNameSaysIsToldAsThat) {
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

}  // namespace
}  // namespace tutti::spec
