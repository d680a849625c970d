#include "spec/site/compute_file.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "spec/file/job_file.h"

namespace tutti::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ComputeFile, KeepsWhatAJobCanTakeAndWarnsOfTheRest) {
  const auto read = ReadComputeFile(
      "$schema: x/amlCompute.schema.json\nname: Cpu-Cluster\ntype: amlcompute\n"
      "size: STANDARD_DS3_v2\nmin_instances: 0\nmax_instances: 2\n",
      "compute.yml");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->compute.name, "Cpu-Cluster");
  EXPECT_EQ(read->compute.max_instances, 2);
  EXPECT_THAT(read->warnings, ElementsAre(HasSubstr("compute.yml:4: \"size\" has no effect"),
                                          HasSubstr("compute.yml:5: \"min_instances\"")));
  EXPECT_EQ(ReadComputeFile("name: ci\ntype: computeinstance\n", "c")->compute.max_instances, 1);
}

TEST(ComputeFile, RefusesWhatCannotBeACompute) {
  const auto error = [](absl::string_view text) {
    return std::string(ReadComputeFile(text, "c.yml").status().message());
  };
  EXPECT_THAT(error("type: amlcompute\n"), HasSubstr("c.yml:1: the key \"name\" is missing"));
  EXPECT_THAT(error("name: local\n"), HasSubstr("c.yml:1: \"local\" means this machine's nodes"));
  EXPECT_THAT(error("name: x\ntype: synapsespark\n"), HasSubstr("c.yml:2: type synapsespark"));
  EXPECT_THAT(error("name: x\nmax_instances: none\n"), HasSubstr("c.yml:2: max_instances"));
}

TEST(ComputeFile, AJobTakesItByNameAndNoMoreNodesThanItHas) {
  const base::TemporaryDirectory home;
  ComputeFiles computes;
  computes["cpu-cluster"] = {.name = "Cpu-Cluster", .max_instances = 2};
  computes["hpc-alias"] = {.name = "hpc-alias", .stands_for = "gone"};
  ASSERT_TRUE(WriteComputes(home.path(), computes).ok());
  const auto site = ReadSite(home.path());
  ASSERT_TRUE(site.ok()) << site.status();
  const auto read = [&](const std::string& text) {
    return ReadJobFile(text, "job.yml", "/base", *site);
  };
  const auto fits =
      read("command: x\ncompute: azureml:cpu-Cluster\nresources: {instance_count: 2}\n");
  ASSERT_TRUE(fits.ok()) << fits.status();
  EXPECT_EQ(fits->spec.compute, "local");
  EXPECT_THAT(std::string(read("command: x\ncompute: azureml:cpu-cluster\n"
                               "resources: {instance_count: 3}\n")
                              .status()
                              .message()),
              HasSubstr("job.yml:3: instance_count is 3, but compute \"Cpu-Cluster\" lets a job "
                        "take 2 nodes"));
  EXPECT_THAT(std::string(read("command: x\ncompute: hpc-alias\n").status().message()),
              HasSubstr("stands for \"gone\", which site.yml does not have"));
  const auto step = read(
      "type: pipeline\nsettings: {default_compute: azureml:cpu-cluster}\n"
      "jobs:\n  a:\n    command: x\n    resources: {instance_count: 3}\n");
  EXPECT_THAT(std::string(step.status().message()), HasSubstr("lets a job take 2 nodes"));
}

TEST(ComputeFile, AFileOfAnotherKindIsToldWithTheRightCommand) {
  EXPECT_THAT(std::string(ReadComputeFile("name: e\nimage: python\n", "e.yml").status().message()),
              HasSubstr("e.yml:2: this is a file of kind environment, where one of kind compute is "
                        "expected: name it in a job file as environment: file:./e.yml, or make it "
                        "known by `tutti environment create --file e.yml`"));
}

}  // namespace
}  // namespace tutti::spec
