// Jobs of a cluster whose nodes have a cache each wish for those that have their data.
// Covers: allocation/data_holders.cc, allocation/cluster_queue.cc.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "platform/service/allocation/data_holders.h"
#include "platform/service/cluster_for_tests.h"
#include "platform/service/world_for_tests.h"
#include "spec/data/datastore.h"

namespace tutti::service {
namespace {

using store::JobState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ServiceDataHoldersTest : public ::testing::Test {
 protected:
  ServiceDataHoldersTest() {
    DiskEngine::Put(folder_.path() / "site.yml",
                    "computes: {hpc: {type: slurm, folder: 'node:/scratch'}}\n");
    // Stands for tutti-storage, which says that all is there.
    const std::filesystem::path program = folder_.path() / "storage";
    DiskEngine::Put(program,
                    "#!/bin/sh\ncat >/dev/null\n"
                    "echo '{\"done\": {\"objects\": 1, \"bytes\": 1, \"digest\": \"\"}}'\n");
    ::chmod(program.c_str(), 0700);
    ::setenv("TUTTI_STORAGE_PROGRAM", program.c_str(), 1);
    spec::Datastores stores;
    stores["sets"] = {.name = "sets",
                      .place = {.kind = spec::StoreKind::kAzureBlob,
                                .account = "acme",
                                .container = "images",
                                .datastore = "sets"}};
    if (!spec::WriteDatastores(folder_.path(), stores).ok()) std::abort();
    cluster_.caches_by_node = true;
    cluster_.runs = true;
    world_ = std::make_unique<World>(folder_.path(), Script{}, 2, &cluster_);
  }

  ~ServiceDataHoldersTest() override { ::unsetenv("TUTTI_STORAGE_PROGRAM"); }

  static std::string Input(const std::string& name, const std::string& path,
                           const std::string& mode = "ro_mount") {
    return absl::StrCat("  ", name, ": {type: uri_folder, mode: ", mode,
                        ", path: 'azureml://datastores/sets/paths/", path, "/'}\n");
  }
  static std::string JobOf(const std::string& name, const std::string& inputs, int nodes = 2) {
    return absl::StrCat("type: command\nname: ", name, "\ncommand: echo hi\ncompute: hpc\n",
                        "resources: {instance_count: ", nodes,
                        "}\ndistribution: {type: mpi}\ninputs:\n", inputs);
  }
  void Submit(const std::string& text) {
    ASSERT_EQ(world_->Submit(text).status(), absl::OkStatus());
    world_->Step();
  }
  // Has the job's launchers on n1 and n2 get ready.
  void GetReady(const std::string& name, const std::string& allocation) {
    ASSERT_TRUE(world_->StepUntilState(name, JobState::kProvisioning)) << world_->Reason(name);
    for (int node = 0; node < 2; ++node) {
      ASSERT_TRUE(
          world_->service()
              .ReportEvents(allocation, node, 1,
                            {R"({"kind":"preparing","time":1})", R"({"kind":"prepared","time":2})"})
              .ok());
    }
    ASSERT_TRUE(world_->StepUntilState(name, JobState::kStarting)) << world_->Reason(name);
  }

  const base::TemporaryDirectory folder_;
  FakeCluster cluster_;
  std::unique_ptr<World> world_;
};

TEST_F(ServiceDataHoldersTest, AreThoseOnWhichAJobOfTheSameDataHasGotReady) {
  const std::string data = Input("images", "train");
  Submit(JobOf("a", data));
  EXPECT_THAT(cluster_.prefer, IsEmpty());
  Submit(JobOf("b", data));
  EXPECT_THAT(cluster_.prefer, IsEmpty()) << "it may not have fetched them yet";
  GetReady("a", "a.1");
  Submit(JobOf("c", data));
  EXPECT_THAT(cluster_.prefer, ElementsAre("n1", "n2"));
  EXPECT_THAT(cluster_.being_left, IsEmpty());
  Submit(JobOf("d", Input("images", "other")));
  EXPECT_THAT(cluster_.prefer, IsEmpty());
  Submit(JobOf("e", data, 3));
  EXPECT_THAT(cluster_.prefer, IsEmpty()) << "two nodes are too few";
}

TEST_F(ServiceDataHoldersTest, AreNoneForDataThatAreReadPieceByPiece) {
  const std::string data = Input("images", "train", "direct");
  Submit(JobOf("a", data));
  GetReady("a", "a.1");
  Submit(JobOf("b", data));
  EXPECT_THAT(cluster_.prefer, IsEmpty());
}

TEST_F(ServiceDataHoldersTest, AreNotThoseThatAJobIsToAvoid) {
  const std::string data = Input("images", "train");
  Submit(JobOf("a", data));
  GetReady("a", "a.1");
  Submit(JobOf("b", data));
  EXPECT_THAT(cluster_.prefer, ElementsAre("n1", "n2"));
  // n1 turns out to be ill.
  ASSERT_TRUE(world_->StepUntilState("b", JobState::kProvisioning));
  ASSERT_TRUE(world_->service()
                  .ReportEvents("b.2", 0, 1,
                                {R"({"kind":"preparing","time":1})",
                                 R"({"kind":"finished","time":2,"ok":false,)"
                                 R"("reason":"it is ill: gpu: gone","ill":"gpu: gone"})"})
                  .ok());
  ASSERT_TRUE(world_->service()
                  .ReportEvents("b.2", 1, 1,
                                {R"({"kind":"preparing","time":1})",
                                 R"({"kind":"finished","time":3,"ok":false,"told":true,)"
                                 R"("reason":"told to end"})"})
                  .ok());
  ASSERT_TRUE(world_->StepUntil([&] { return cluster_.allocations().contains("b.2-2"); }));
  EXPECT_THAT(cluster_.avoid, ElementsAre("n1"));
  EXPECT_THAT(cluster_.prefer, IsEmpty()) << "one node is too few";
  Submit(JobOf("c", data, 1));
  EXPECT_THAT(cluster_.avoid, ElementsAre("n1"));
  EXPECT_THAT(cluster_.prefer, ElementsAre("n2"));
}

TEST_F(ServiceDataHoldersTest, AreAboutToBeFreeOnceTheirJobHasEnded) {
  const std::string data = Input("images", "train");
  Submit(JobOf("a", data));
  GetReady("a", "a.1");
  ASSERT_TRUE(world_->service().Cancel("a").ok());
  for (int node = 0; node < 2; ++node) {
    ASSERT_TRUE(world_->service()
                    .ReportEvents("a.1", node, 3,
                                  {R"({"kind":"finished","time":3,"ok":false,"told":true,)"
                                   R"("reason":"told to end"})"})
                    .ok());
  }
  ASSERT_TRUE(world_->StepUntilState("a", JobState::kCanceled));
  Submit(JobOf("b", data));
  EXPECT_THAT(cluster_.prefer, ElementsAre("n1", "n2"));
  EXPECT_THAT(cluster_.being_left, ElementsAre("n1", "n2"));
  world_->clock().Advance(absl::Seconds(30));
  Submit(JobOf("c", data));
  EXPECT_THAT(cluster_.prefer, ElementsAre("n1", "n2"));
  EXPECT_THAT(cluster_.being_left, IsEmpty()) << "they take long to end";
}

TEST_F(ServiceDataHoldersTest, AreKnownToTheServiceThatComesAfter) {
  const std::string data = Input("images", "train");
  Submit(JobOf("a", data));
  GetReady("a", "a.1");
  world_.reset();
  const auto store = store::Store::Open(folder_.path() / "tutti.db", {});
  ASSERT_TRUE(store.ok()) << store.status();
  const auto job = (*store)->GetJob("a");
  ASSERT_TRUE(job.ok()) << job.status();
  FakeCluster local;
  Engines engines(&local);
  engines.clusters["hpc"] = &cluster_;
  const base::SystemClock clock;
  SharedState state({.directory = folder_.path()}, store->get(), engines, &clock);
  DataHolders holders(state);
  holders.ReadPast();  // which is done when it returns, without threads
  StateLock lock(state);
  EXPECT_THAT(holders.NodesFor(job->job.spec, {}), ElementsAre("n1", "n2"));
}

TEST_F(ServiceDataHoldersTest, AreNoneWhereNodesShareACache) {
  cluster_.caches_by_node = false;
  world_->Open();
  const std::string data = Input("images", "train");
  Submit(JobOf("a", data));
  GetReady("a", "a.1");
  Submit(JobOf("b", data));
  EXPECT_THAT(cluster_.prefer, IsEmpty());
}

}  // namespace
}  // namespace tutti::service
