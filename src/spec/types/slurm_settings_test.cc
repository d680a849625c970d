#include "spec/types/slurm_settings.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "spec/json/job_json.h"
#include "spec/site/slurm_compute.h"
#include "spec/text/diagnostics.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/job.h"

namespace tutti::spec {
namespace {

TEST(SlurmSettingsTest, AJobsTextsStandOverItsComputesAndNoneLeavesThemToSlurm) {
  for (const SlurmText& text : kSlurmTexts) {
    SlurmSettings compute, own, none;
    compute.*text.member = "theirs";
    own.*text.member = "own";
    none.*text.member = "none";
    EXPECT_EQ(Over(compute, {}).*text.member, "theirs") << text.key;
    EXPECT_EQ(Over(compute, own).*text.member, "own") << text.key;
    EXPECT_EQ(Over(compute, none).*text.member, "") << text.key;
  }
}

TEST(SlurmSettingsTest, EveryTextIsReadKeptAndDocumented) {
  const auto page = base::ReadFile(TUTTI_PAGES "/slurm/README.md", 1 << 20);
  ASSERT_TRUE(page.ok()) << page.status();
  for (const SlurmText& text : kSlurmTexts) {
    Diagnostics diagnostics("site.yml");
    const auto tree = ParseYaml(absl::StrCat(text.key, ": given\n"), "site.yml");
    ASSERT_TRUE(tree.ok()) << tree.status();
    JobSpec job;
    job.slurm = ReadSlurmSettings(**tree, "slurm", diagnostics);
    EXPECT_TRUE(diagnostics.status().ok()) << text.key;
    const auto kept = JobSpecFromJson(ToJson(job));
    ASSERT_TRUE(kept.ok()) << kept.status();
    EXPECT_EQ(kept->slurm.*text.member, "given") << text.key;
    EXPECT_NE(page->find(absl::StrCat("`", text.key, "`")), std::string::npos) << text.key;
  }
}

TEST(SlurmSettingsTest, FindsTheSettingThatAsksForGpus) {
  EXPECT_EQ(GpusAskedFor({}), "");
  EXPECT_EQ(GpusAskedFor({.gres = "license:1,gpu:4"}), "gres license:1,gpu:4");
  EXPECT_EQ(GpusAskedFor({.options = {"--mem=1G", "--gpus-per-node=2"}}), "--gpus-per-node=2");
  EXPECT_EQ(GpusAskedFor({.shape = {"--gres=gpu:1"}}), "--gres=gpu:1");
  EXPECT_EQ(GpusAskedFor({.gres = "license:1"}), "");
}

}  // namespace
}  // namespace tutti::spec
