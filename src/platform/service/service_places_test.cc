// Inputs in stores: looked at before a job queues, with credentials that its launchers get alone.
// Covers: admission/place_check.cc, admission/submission_check.cc, allocation/effects.cc.
#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "platform/service/cluster_for_tests.h"
#include "platform/service/world_for_tests.h"
#include "spec/data/datastore.h"
#include "spec/data/file_server.h"

namespace tutti::service {
namespace {

using store::JobState;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

constexpr char kKeyOfSite[] = "aHVudGVyMjI=";

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
    "*'\"operation\":\"digest\"'*vast*) echo '{\"done\": {\"objects\": 1, \"bytes\": "
    "1000000000000000000, \"digest\": \"\"}}'; exit;;\n"
    "*'\"operation\":\"digest\"'*slow*) exec sleep 600;;\n"
    "*'\"operation\":\"digest\"'*broken*) fail network 'no route';;\n"
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
  void SetKey(const std::string& key = kKeyOfSite) {
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
              ElementsAre(Pair("datastore.blobs", HasSubstr(kKeyOfSite))));
  const auto plan = base::ReadFile(world_->engine().root() / "s.1" / "plan-0");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(*plan, AllOf(HasSubstr("\"datastore.blobs\""), HasSubstr("\"train\""),
                           Not(HasSubstr(kKeyOfSite))));
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

TEST_F(PlacesTest, WhatTheDiskHasNoRoomForIsToldBeforeTheJobQueuesWhereAListTellsIt) {
  WriteCluster("/shared");
  Open(&cluster_);
  SetKey();
  const auto refused = world_->Submit(Job("vast")).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("job.yml:5: input \"x\": container \"images\" of Azure account "
                              "\"acme\", path \"vast\" has 931322574.6 GiB; the job needs "),
                    HasSubstr(folder_.path().native() + "/data, where "), HasSubstr(" are free")));
  EXPECT_THAT(WhyRefused(Job("vast/*.bin")), HasSubstr("path \"vast/*.bin\" has "));
  EXPECT_EQ(WhyRefused(Job("vast", "hpc")), "") << "its nodes' disks are not known here";
  for (const char* path : {"slow", "broken"}) {
    const std::string named = absl::StrCat("name: of-", path);
    EXPECT_EQ(WhyRefused(absl::StrReplaceAll(Job(path), {{"name: s", named}})), "")
        << "nobody knows how much it is";
  }
  EXPECT_EQ(WhyRefused(absl::StrReplaceAll(
                Job("vast"), {{"name: s", "name: u"}, {"{path", "{mode: direct, path"}})),
            "")
      << "that reads as it goes";
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

// Whoever has its port on a node would be believed there.
TEST_F(PlacesTest, AFileServerOfThisMachineAloneIsNoneForACluster) {
  WriteCluster(folder_.path() / "shared");
  spec::FileServer alone = {.name = "photos", .folder = "/data", .clients = {"127.0.0.0/8"}};
  spec::FileServer open = {.name = "open", .folder = "/data", .address = "10.0.0.5"};
  open.clients = {"10.0.0.0/24"};
  ASSERT_TRUE(spec::WriteFileServers(folder_.path(), {{"photos", alone}, {"open", open}}).ok());
  spec::Datastores stores;
  for (const spec::FileServer& server : {alone, open}) {
    stores[server.name] = {.name = server.name, .type = "nfs", .place = PlaceOf(server)};
  }
  ASSERT_TRUE(spec::WriteDatastores(folder_.path(), stores).ok());
  Open(&cluster_);
  const auto reads = [](const std::string& path, const std::string& compute) {
    return absl::StrCat("command: ls\ncompute: ", compute, "\ninputs:\n  x: {path: '", path,
                        "'}\n");
  };
  constexpr char kWhy[] =
      "job.yml:4: input \"x\": file server photos is at 127.0.0.1, which each node of compute "
      "\"hpc\" takes for itself: give it an address that they reach";
  const std::string by_datastore = "azureml://datastores/photos/paths/gone";
  EXPECT_THAT(WhyRefused(reads(by_datastore, "hpc")), HasSubstr(kWhy));
  EXPECT_THAT(WhyRefused(reads("nfs://127.0.0.1/photos/gone", "hpc")), HasSubstr(kWhy));
  const std::string answered = "job.yml:4: input \"x\": nothing is there";
  EXPECT_EQ(WhyRefused(reads(by_datastore, "local")), answered);
  EXPECT_EQ(WhyRefused(reads("azureml://datastores/open/paths/gone", "hpc")), answered);
  EXPECT_THAT(WhyRefused(absl::StrCat("type: pipeline\njobs:\n  one:\n    type: command\n",
                                      "    command: ls\n    compute: hpc\n    inputs:\n",
                                      "      x: {path: '", by_datastore, "'}\n")),
              HasSubstr("file server photos is at 127.0.0.1"));
}

// A chief and its parameter server on a cluster, whose launchers are this test.
class ServedJobTest : public PlacesTest {
 protected:
  ServedJobTest() {
    WriteCluster("/shared");
    cluster_.runs = true;
    Open(&cluster_);
    SetKey();
  }
  void Say(int node, const std::vector<std::string>& events) {
    const int64_t first = static_cast<int64_t>(said_[node]) + 1;
    EXPECT_TRUE(world_->service().ReportEvents("s.1", node, first, events).ok());
    said_[node] += events.size();
    world_->Step();
  }
  // Takes it as far as its chief has ended well and the server's process was ended.
  void Serve(const std::string& outputs) {
    ASSERT_EQ(world_
                  ->Submit(absl::StrCat("name: s\ncommand: echo hi\ncompute: hpc\n"
                                        "resources: {instance_count: 2}\n"
                                        "distribution: {type: tensorflow, worker_count: 1, "
                                        "parameter_server_count: 1}\n",
                                        outputs))
                  .status(),
              absl::OkStatus());
    ASSERT_TRUE(world_->StepUntilState("s", JobState::kProvisioning));
    for (int node : {0, 1}) {
      Say(node, {R"({"kind": "preparing"})", R"({"kind": "prepared"})",
                 absl::StrCat(R"({"kind": "started", "rank": )", node, "}")});
    }
    Say(0, {R"({"kind": "exited", "code": 0, "rank": 0})", R"({"kind": "finished"})"});
    ASSERT_TRUE(world_->StepUntilState("s", JobState::kFinalizing));
    world_->Step();
    Say(1, {R"({"kind": "exited", "code": 0, "rank": 1, "stopped": true})"});
  }
  void PassHours(int hours) {
    for (int i = 0; i < hours; ++i) {
      world_->clock().Advance(absl::Hours(1));
      world_->Step();
    }
  }
  std::map<int, size_t> said_;
};

TEST_F(ServedJobTest, ThatStoresOutputsIsLeftTheTimeForItUntilItIsCanceled) {
  Serve("outputs:\n  x: {path: 'azureml://datastores/blobs/paths/runs/x'}\n");
  EXPECT_THAT(cluster_.stopped_patiently, Contains("s.1"));
  PassHours(20);
  EXPECT_EQ(world_->State("s"), JobState::kFinalizing) << world_->Reason("s");
  EXPECT_THAT(cluster_.stopped, IsEmpty());
  EXPECT_THAT(cluster_.killed, IsEmpty());
  ASSERT_TRUE(world_->service().Cancel("s").ok());
  EXPECT_TRUE(world_->StepUntil([&] { return cluster_.stopped.contains("s.1"); }));
  Say(1, {R"({"kind": "finished"})"});
  ASSERT_TRUE(world_->StepUntilOver("s"));
  EXPECT_EQ(world_->State("s"), JobState::kCanceled);
}

TEST_F(ServedJobTest, ThatHasNothingToStoreIsNotWaitedFor) {
  Serve("");
  EXPECT_THAT(cluster_.stopped, Contains("s.1"));
  EXPECT_THAT(cluster_.stopped_patiently, IsEmpty());
  PassHours(1);
  EXPECT_TRUE(world_->StepUntil([&] { return cluster_.killed.contains("s.1"); }));
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
