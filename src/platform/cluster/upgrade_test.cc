#include "platform/cluster/upgrade.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tutti::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

HostFacts HostWithApt(const std::string& name) {
  HostFacts host;
  host.host = host.name = name;
  host.address = "10.0.0.1";
  host.has_apt = true;
  return host;
}

class UpgradeTest : public ::testing::Test {
 protected:
  UpgradeTest() {
    wanted_.controller = "a";
    wanted_.nodes = {"a", "b"};
    wanted_.accounting.emplace();
  }
  // Describes a host that has slurmctld besides the packages that every host has.
  static HostPackages Host(const std::string& host, const PackageVersions& versions) {
    HostPackages packages;
    packages.host = host;
    for (const char* name : {"slurm-client", "slurmctld", "slurmd"}) {
      packages.packages[name] = versions;
    }
    packages.packages["munge"] = {"0.5.15", ""};
    return packages;
  }
  std::vector<std::string> StepTexts() {
    std::vector<std::string> told;
    const auto steps = PlanUpgrade(wanted_, facts_, packages_);
    if (!steps.ok()) return {std::string(steps.status().message())};
    for (const Step& step : *steps) told.push_back(absl::StrCat(step.host, " ", step.what));
    return told;
  }

  Description wanted_;
  const std::vector<HostFacts> facts_ = {HostWithApt("a"), HostWithApt("b")};
  const PackageVersions old_{"22.05.8-4", ""}, newer_{"22.05.8-4", "22.05.9-1"};
  std::vector<HostPackages> packages_ = {Host("a", newer_), Host("b", newer_)};
};

TEST_F(UpgradeTest, FetchesAllThenUpgradesDatabaseThenControllerThenNodes) {
  EXPECT_THAT(StepTexts(),
              ElementsAre("a fetch 3 newer packages", "b fetch 3 newer packages",
                          "a upgrade slurmdbd to 22.05.9-1", "a upgrade slurmctld to 22.05.9-1",
                          "a upgrade slurmd to 22.05.9-1", "b upgrade slurmd to 22.05.9-1"));
  EXPECT_EQ(MajorChange(wanted_, packages_), "");
}

TEST_F(UpgradeTest, HasNothingToDoWhereThereIsNothingNewer) {
  packages_ = {Host("a", old_), Host("b", old_)};
  EXPECT_THAT(StepTexts(), IsEmpty());
}

TEST_F(UpgradeTest, RestartsWhatRunsOnWithAProgramThatWasReplaced) {
  packages_ = {Host("a", old_), Host("b", old_)};
  packages_[1].outdated = {"munged", "slurmd"};
  EXPECT_THAT(StepTexts(), ElementsAre("b restart munged, whose program was replaced",
                                       "b restart slurmd, whose program was replaced"));
}

TEST_F(UpgradeTest, InstallsOnceOnAHostAndTakesNothingAway) {
  const auto steps = PlanUpgrade(wanted_, facts_, packages_);
  ASSERT_TRUE(steps.ok()) << steps.status();
  EXPECT_THAT((*steps)[0].script, HasSubstr("--download-only"));
  EXPECT_THAT((*steps)[2].script,
              HasSubstr("--only-upgrade --no-remove slurm-client slurmctld slurmd </dev/null\n"));
  EXPECT_THAT((*steps)[3].script, Not(HasSubstr("apt-get")));
}

TEST_F(UpgradeTest, RefusesANodeThatWouldBeAheadOfItsController) {
  packages_[1] = Host("b", {"22.05.8-4", "24.11.5-1"});
  EXPECT_THAT(StepTexts(),
              ElementsAre(HasSubstr("b would have Slurm 24.11, and the controller only "
                                    "22.05")));
}

TEST_F(UpgradeTest, TellsOfAnotherMajorRelease) {
  packages_ = {Host("a", {"22.05.8-4", "23.11.4-1"}), Host("b", old_)};
  EXPECT_EQ(MajorChange(wanted_, packages_), "from 22.05 to 23.11");
}

TEST_F(UpgradeTest, RefusesAReleaseThatDoesNotReadTheStateOfThisOne) {
  const auto fits = [&](const char* from, const char* to) {
    packages_ = {Host("a", {absl::StrCat("1:", from, ".8-4"), absl::StrCat(to, ".1-1")}),
                 Host("b", old_)};
    return !absl::StrContains(StepTexts().front(), "does not read");
  };
  // Slurm's own table.
  const std::map<const char*, std::vector<const char*>> reads = {
      {"23.02", {"21.08", "22.05"}},          {"23.11", {"22.05", "23.02"}},
      {"24.05", {"23.02", "23.11"}},          {"24.11", {"23.02", "23.11", "24.05"}},
      {"25.05", {"23.11", "24.05", "24.11"}}, {"25.11", {"24.05", "24.11", "25.05"}}};
  for (const auto& [to, read] : reads) {
    for (const char* from :
         {"20.11", "21.08", "22.05", "23.02", "23.11", "24.05", "24.11", "25.05"}) {
      if (std::string(from) >= to) continue;
      EXPECT_EQ(fits(from, to),
                std::find(read.begin(), read.end(), std::string(from)) != read.end())
          << from << " to " << to;
    }
  }
}

TEST(Packages, AreReadFromWhatTheScriptPrints) {
  const auto host = ReadPackages("a",
                                 "package=munge 0.5.15-2+deb12u1\noutdated=slurmd\noutdated=sshd\n"
                                 "package=slurmd 22.05.8-4+deb12u3 22.05.9-1~x\nend=yes\n");
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_EQ(host->packages.at("munge").after(), "0.5.15-2+deb12u1");
  EXPECT_EQ(host->packages.at("slurmd").newer, "22.05.9-1~x");
  EXPECT_THAT(host->outdated, ElementsAre("slurmd"));
}

TEST(Packages, ThatWouldBreakAScriptAreRefused) {
  for (const char* line :
       {"package=", "package=slurmd", "package=slurmd 1;rm", "package=slurmd 1 2 3"}) {
    EXPECT_THAT(ReadPackages("a", absl::StrCat(line, "\nend=yes\n")).status().message(),
                HasSubstr("a: cannot use"));
  }
  EXPECT_THAT(ReadPackages("a", "package=slurmd 1\n").status().message(), HasSubstr("to the end"));
}

}  // namespace
}  // namespace tutti::cluster
