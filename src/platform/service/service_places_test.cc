// Inputs in stores: looked at before a job queues, with credentials that its launchers get alone.
// Covers: admission/place_check.cc.
#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "platform/service/cluster_for_tests.h"
#include "platform/service/world_for_tests.h"
#include "spec/data/datastore.h"

namespace tutti::service {
namespace {

using store::JobState;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

constexpr char kKey[] = "aHVudGVyMjI=";

// Stands for tutti-storage: answers as the path of the place says.
constexpr char kProgram[] =
    "#!/bin/sh\n"
    "request=$(cat)\n"
    "fail() { echo \"{\\\"error\\\": {\\\"kind\\\": \\\"$1\\\", \\\"message\\\": \\\"$2\\\", "
    "\\\"source\\\": \\\"${3:-store}\\\"}}\"; exit 1; }\n"
    "echo \"$request\" >>\"$0.asked\"\n"
    "case $request in\n"
    "*gone*) fail not_found 'nothing is there';;\n"
    "*far*) fail network 'no route';;\n"
    "*may-not*) fail credentials 'it may not write there';;\n"
    "*aHVudGVyMjI=*) ;;\n"
    "*) fail credentials 'the key is wrong' login;;\n"
    "esac\n"
    "echo '{\"done\": {\"objects\": 1, \"bytes\": 1, \"digest\": \"\"}}'\n";

class PlacesTest : public ::testing::Test {
 protected:
  PlacesTest() {
    const std::filesystem::path program = folder_.path() / "storage";
    if (!base::WriteFileAtomic(program, kProgram).ok()) std::abort();
    ::chmod(program.c_str(), 0700);
    ::setenv("TUTTI_STORAGE_PROGRAM", program.c_str(), 1);
    spec::Datastores stores;
    stores["blobs"] = {.name = "blobs",
                       .place = {.kind = spec::StoreKind::kAzureBlob,
                                 .account = "acme",
                                 .container = "images",
                                 .credential = spec::CredentialKind::kAccountKey,
                                 .secret = "datastore.blobs",
                                 .datastore = "blobs"}};
    if (!spec::WriteDatastores(folder_.path(), stores).ok()) std::abort();
  }
  ~PlacesTest() override { ::unsetenv("TUTTI_STORAGE_PROGRAM"); }

  void Open(engine::Engine* cluster = nullptr) {
    world_ = std::make_unique<World>(folder_.path(), Script(), 2, cluster);
  }
  void SetKey(const std::string& key = kKey) {
    ASSERT_TRUE(world_->service()
                    .SetSecret("datastore.blobs", absl::StrCat("{\"account_key\": \"", key, "\"}"))
                    .ok());
  }
  static std::string Job(const std::string& path, const std::string& compute = "local") {
    return absl::StrCat("name: s\ncommand: ls ${{inputs.x}}\ncompute: ", compute,
                        "\ninputs:\n  x: {path: 'azureml://datastores/blobs/paths/", path, "'}\n");
  }
  std::string WhyRefused(const std::string& text) {
    return std::string(world_->Submit(text).status().message());
  }
  // Writes a cluster "hpc" into site.yml.
  void WriteCluster(const std::string& folder) {
    ASSERT_TRUE(base::WriteFileAtomic(
                    folder_.path() / "site.yml",
                    absl::StrCat("computes:\n  hpc: {type: slurm, folder: '", folder, "'}\n"))
                    .ok());
  }

  const base::TemporaryDirectory folder_;
  FakeCluster cluster_;
  std::unique_ptr<World> world_;
};

TEST_F(PlacesTest, ItsLaunchersGetTheCredentialsAndThePlanTheirName) {
  Open();
  SetKey();
  ASSERT_TRUE(world_->Submit(Job("train")).ok());
  ASSERT_TRUE(
      world_->StepUntil([&] { return world_->service().SecretsForLauncher("s.1", 0).ok(); }));
  EXPECT_THAT(*world_->service().SecretsForLauncher("s.1", 0),
              ElementsAre(Pair("datastore.blobs", HasSubstr(kKey))));
  const auto plan = base::ReadFile(world_->engine().root() / "s.1" / "plan-0");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(
      *plan, AllOf(HasSubstr("\"datastore.blobs\""), HasSubstr("\"train\""), Not(HasSubstr(kKey))));
  EXPECT_TRUE(world_->StepUntilOver("s"));
}

TEST_F(PlacesTest, WhatCannotBeHadIsToldWithTheInputsLineBeforeTheJobQueues) {
  Open();
  EXPECT_THAT(
      WhyRefused(Job("train")),
      AllOf(HasSubstr("job.yml:5: input \"x\": there is no secret \"datastore.blobs\" (of a "
                      "datastore): tutti datastore create --file FILE")));
  SetKey("d3Jvbmc=");
  EXPECT_THAT(WhyRefused(Job("train")),
              AllOf(HasSubstr("job.yml:5: input \"x\": the key is wrong; give datastore blobs"),
                    Not(HasSubstr("d3Jvbmc="))));
  SetKey();
  EXPECT_EQ(WhyRefused(Job("gone")), "job.yml:5: input \"x\": nothing is there");
  EXPECT_THAT(WhyRefused(Job("far")), HasSubstr("job.yml:5: input \"x\": no route"));
}

TEST_F(PlacesTest, AnOutputIsRefusedWhereItIsCertainThatItCannotBeWritten) {
  Open();
  SetKey();
  const auto job = [](const std::string& type, const std::string& path) {
    return absl::StrCat("command: echo hi\ncompute: local\noutputs:\n  x: {type: ", type,
                        ", path: 'azureml://datastores/blobs/paths/", path, "'}\n");
  };
  EXPECT_THAT(WhyRefused(job("uri_folder", "may-not/x")),
              HasSubstr("job.yml:4: output \"x\": it may not write there; give datastore blobs"));
  const auto taken = world_->Submit(job("uri_file", "may-not/x.pt"));
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_THAT(taken->record.job.warnings,
              ElementsAre(AllOf(HasSubstr("it may not write there"),
                                HasSubstr("they may be for this one file"))));
  ASSERT_TRUE(world_->Submit(job("uri_folder", "runs/${{name}}/x")).ok());
  EXPECT_THAT(base::ReadFile(folder_.path() / "storage.asked").value_or(""),
              AllOf(HasSubstr("runs/tutti-probe/x"), Not(HasSubstr("${{name}}"))));
  SetKey("d3Jvbmc=");
  EXPECT_THAT(WhyRefused(job("uri_file", "x.pt")), HasSubstr("the key is wrong"));
}

TEST_F(PlacesTest, AJobThatWaitsForADatastoreThatIsForgottenFails) {
  WriteCluster("/shared");
  Open(&cluster_);
  SetKey();
  ASSERT_TRUE(world_->Submit(Job("train", "hpc")).ok());
  ASSERT_TRUE(world_->StepUntil([&] { return cluster_.allocations().contains("s.1"); }));
  EXPECT_THAT(*world_->service().DeleteSecret("datastore.blobs"), ElementsAre("s"));
  EXPECT_EQ(world_->State("s"), JobState::kFailed);
  EXPECT_THAT(world_->Reason("s"), HasSubstr("(of a datastore), which it names, was deleted"));
}

TEST_F(PlacesTest, AStoreOutOfReachIsAWarningToAClustersJob) {
  WriteCluster("/shared");
  Open(&cluster_);
  SetKey();
  const auto job = world_->Submit(Job("far", "hpc"));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->record.job.warnings,
              testing::Contains(AllOf(HasSubstr("no route"), HasSubstr("compute \"hpc\""))));
}

TEST_F(PlacesTest, WhatNodesThatShareNoFolderReadIsLookedAtAsAllElse) {
  WriteCluster("node:/tmp");
  Open(&cluster_);
  SetKey();
  EXPECT_EQ(WhyRefused(Job("gone", "hpc")), "job.yml:5: input \"x\": nothing is there");
  EXPECT_EQ(WhyRefused(Job("train", "hpc")), "");
}

TEST_F(PlacesTest, NoJobCanBeGivenADatastoresCredentials) {
  Open();
  SetKey();
  EXPECT_THAT(WhyRefused("name: s\ncommand: x\nresources: {properties: {tutti: {secrets: {A: "
                         "datastore.blobs}}}}\n"),
              HasSubstr("must name a secret"));
}

}  // namespace
}  // namespace tutti::service
