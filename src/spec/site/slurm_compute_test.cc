#include "spec/site/slurm_compute.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "spec/site/site.h"
#include "spec/types/node_folder.h"

namespace tutti::spec {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;

class SlurmComputeTest : public ::testing::Test {
 protected:
  void Write(const char* name, const char* text) {
    ASSERT_TRUE(base::WriteFileAtomic(home_.path() / name, text).ok());
  }
  base::TemporaryDirectory home_;
};

TEST_F(SlurmComputeTest, AComputeMayBeASlurmCluster) {
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

TEST_F(SlurmComputeTest, AClustersFolderMayBeOnEachNode) {
  Write("site.yml", "computes: {apart: {type: slurm, folder: 'node:/tmp'}}\n");
  const auto site = ReadSite(home_.path());
  ASSERT_TRUE(site.ok()) << site.status();
  EXPECT_EQ(NodeFolder(site->slurm_computes.at("apart").folder), "/tmp");
  EXPECT_EQ(NodeFolder("/shared"), std::nullopt);
  Write("site.yml", "computes:\n  apart: {type: slurm, folder: 'node:tmp'}\n");
  EXPECT_THAT(std::string(ReadSite(home_.path()).status().message()),
              HasSubstr("site.yml:2: node: is followed by a path on the nodes"));
}

TEST_F(SlurmComputeTest, AClusterSaysHowItsNodesReachTheService) {
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

TEST_F(SlurmComputeTest, OptionsThatAreTuttisAreRefusedAlsoWhereTheyAreCutShort) {
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

TEST_F(SlurmComputeTest, NoTwoClustersShareAFolder) {
  Write(
      "site.yml",
      "computes:\n  a: {type: slurm, folder: /x}\n  b: {type: slurm, folder: /x/, partition: gpu}\n"
      "  c: {type: slurm, folder: 'node:/tmp'}\n  d: {type: slurm, folder: 'node:/tmp'}\n");
  const std::string error(ReadSite(home_.path()).status().message());
  EXPECT_THAT(error, HasSubstr("site.yml:3: compute \"b\" has the folder of \"a\""));
  EXPECT_THAT(error, Not(HasSubstr("\"d\"")));
}

TEST_F(SlurmComputeTest, AClustersMistakesAreNamedByLine) {
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

}  // namespace
}  // namespace tutti::spec
