// The Slurm engine's folder, and what launchers are told. What every engine promises is in
// engine_contract_test.cc.
// Covers: slurm_allocation.cc, compute_folder.cc.
#include "platform/engine/slurm/slurm_engine.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "platform/engine/slurm/slurm_engine_test_support.h"

namespace tutti::engine {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Fault = SlurmCommandsFake::Fault;

TEST_F(SlurmEngineTest, AnEngineThatCameBackFindsWhatItHadSubmitted) {
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  Open();
  EXPECT_THAT(AwaitRunning("a.1").launcher_alive, ElementsAre(true, true));
  EXPECT_EQ(State("a.1").nodes.size(), 2U);
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  EXPECT_EQ(slurm_.count("sbatch"), 1);
}

TEST_F(SlurmEngineTest, WhatALossOfPowerLeftOfAnAllocationIsMadeWholeBeforeItIsSubmitted) {
  const std::filesystem::path folder = root_.path() / "shared/a.1";
  ASSERT_TRUE(base::MakeDirectories(folder / "0").ok());
  for (const char* file : {"batch.sh", "slurm-id"}) {
    ASSERT_TRUE(base::ReplaceFile(folder / file, "").ok());
  }
  Open();
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  EXPECT_THAT(AwaitRunning("a.1").launcher_alive, SizeIs(2));
  EXPECT_THAT(*base::ReadFile(folder / "batch.sh"), HasSubstr("srun"));
  EXPECT_EQ(PlanOf("a.1", 1).node_index, 1);
}

TEST_F(SlurmEngineTest, WhatWasBeingRemovedWhenTheServiceDiedIsNoAllocation) {
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  slurm_.End("a.1", "COMPLETED");
  AwaitEnd("a.1");
  engine_.reset();
  const std::filesystem::path away = root_.path() / "shared/.released-a.1";
  std::filesystem::rename(root_.path() / "shared/a.1", away);
  std::filesystem::remove(away / "end");
  Open();
  EXPECT_THAT(*engine_->Observe(), IsEmpty());
  const base::Deadline deadline = base::Deadline::After(base::Patient(absl::Seconds(10)));
  while (std::filesystem::exists(away) && !deadline.Expired()) std::this_thread::yield();
  EXPECT_FALSE(std::filesystem::exists(away));
}

TEST_F(SlurmEngineTest, WhatWasBeingMadeWhenTheServiceDiedGoesAndWhatIsTheUsersStays) {
  const std::filesystem::path shared = root_.path() / "shared", half = shared / "a.1";
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  engine_.reset();
  for (const char* file : {"batch.sh", "slurm-id"}) std::filesystem::remove(half / file);
  ASSERT_TRUE(base::MakeDirectories(shared / "users/0").ok());
  for (const char* file : {"users/plan.json", "users/0/plan.json"}) {
    ASSERT_TRUE(base::WriteFileAtomic(shared / file, R"({"allocation_id": "other"})").ok());
  }
  Open();
  EXPECT_THAT(*engine_->Observe(), IsEmpty());
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(10), [&] {
    return !std::filesystem::exists(half) && !std::filesystem::exists(shared / ".released-a.1");
  }));
  EXPECT_TRUE(std::filesystem::exists(shared / "users/0/plan.json"));
}

TEST_F(SlurmEngineTest, AFolderThatItMadeItselfIsTheUsersAlone) {
  const auto mode_of = [&](const char* name) {
    struct stat info = {};
    EXPECT_EQ(::stat((root_.path() / name).c_str(), &info), 0);
    return info.st_mode & 0777;
  };
  EXPECT_EQ(mode_of("shared"), 0700U);
  ASSERT_EQ(::chmod((root_.path() / "shared").c_str(), 0750), 0);  // the user's own word
  Open();
  EXPECT_EQ(mode_of("shared"), 0750U);
}

TEST_F(SlurmEngineTest, AFolderInWhichOthersCouldPutAnotherScriptIsRefused) {
  engine_.reset();
  SlurmEngineOptions options;
  options.compute.folder = root_.path() / "shared/";
  const auto opened_as = [&](mode_t mode) {
    EXPECT_EQ(::chmod(options.compute.folder.c_str(), mode), 0);
    return SlurmEngine::Open(options, &slurm_).status();
  };
  for (const mode_t wrong : {0770, 0775, 0702, 0777}) {
    const absl::Status refused = opened_as(wrong);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("chmod go-w "));
  }
  for (const mode_t right : {0700, 0750, 0755, 01777}) {
    EXPECT_EQ(opened_as(right), absl::OkStatus());
  }
}

TEST_F(SlurmEngineTest, AFolderIsOneServicesAtATime) {
  SlurmEngineOptions options;
  options.compute.folder = root_.path() / "shared";
  const auto second = SlurmEngine::Open(options, &slurm_);
  ASSERT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()),
              AllOf(HasSubstr(absl::StrCat("process ", ::getpid(), " on ")),
                    HasSubstr("give this one another folder")));
  engine_.reset();
  EXPECT_TRUE(SlurmEngine::Open(options, &slurm_).ok());
}

TEST_F(SlurmEngineTest, AFolderThatWasCopiedHasAnIdOfItsOwnAndNoJobsOfTheOthers) {
  namespace fs = std::filesystem;
  const fs::path folder = root_.path() / "shared", copy = root_.path() / "copy";
  const auto open = [&](const fs::path& at) {
    SlurmEngineOptions options;
    options.compute.folder = at;
    return SlurmEngine::Open(options, &listening_).status();
  };
  const auto id_of = [](const fs::path& at) { return base::ReadFile(at / "id").value_or(""); };
  engine_.reset();
  const std::string id = id_of(folder);
  fs::copy(folder, copy, fs::copy_options::recursive);
  EXPECT_EQ(open(copy), absl::OkStatus());
  EXPECT_NE(id_of(copy), id);
  fs::remove_all(copy);

  Open();
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  engine_.reset();
  fs::copy(folder, copy, fs::copy_options::recursive);
  const absl::Status refused = open(copy);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("is a copy of " + folder.native()),
                                                    HasSubstr("rm " + copy.native())));
  Open();
  AwaitRunning("a.1");
  engine_.reset();
  EXPECT_EQ(slurm_.count("scancel"), 0);

  fs::remove_all(folder);  // restored from the copy
  fs::copy(copy, folder, fs::copy_options::recursive);
  Open();
  EXPECT_EQ(id_of(folder), id);
  engine_.reset();
  fs::rename(folder, root_.path() / "elsewhere");
  EXPECT_EQ(open(root_.path() / "elsewhere"), absl::OkStatus());
  EXPECT_EQ(id_of(root_.path() / "elsewhere"), id);
}

// So a service that starts on a full disk has its computes.
TEST_F(SlurmEngineTest, WhatSaysWhoseAFolderIsIsNotWrittenAnew) {
  const auto inode_of = [&](const char* name) {
    struct stat info = {};
    EXPECT_EQ(::stat((root_.path() / "shared" / name).c_str(), &info), 0) << name;
    return info.st_ino;
  };
  const auto id = inode_of("id"), place = inode_of("place");
  engine_.reset();
  Open();
  EXPECT_EQ(inode_of("id"), id);
  EXPECT_EQ(inode_of("place"), place);
}

TEST_F(SlurmEngineTest, AnAllocationThatCannotBeReadIsAnErrorAndItsJobRunsOn) {
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  engine_.reset();
  const std::filesystem::path script = root_.path() / "shared/a.1/batch.sh";
  std::filesystem::remove(script);
  std::filesystem::create_symlink(script, script);  // for root too
  SlurmEngineOptions options;
  options.compute.folder = root_.path() / "shared";
  EXPECT_THAT(SlurmEngine::Open(options, &slurm_).status().message(), HasSubstr(script.native()));
  EXPECT_EQ(slurm_.state(1), "RUNNING");
}

TEST_F(SlurmEngineTest, LaunchersThatCannotReachTheServiceGoByTheFolderWithOneCollector) {
  OpenWithService("http://127.0.0.1:6280");
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  EXPECT_EQ(PlanOf("a.1", 1).service_file, "");
  EXPECT_FALSE(std::filesystem::exists(root_.path() / "shared/launcher.json"));
  const std::vector<std::string> first = AwaitCollectors("a.1", 1);
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_THAT(first[0], AllOf(HasSubstr("shared/a.1 "), HasSubstr(launcher_file_.native())));
  const int pid = std::atoi(first[0].c_str());
  EXPECT_EQ(::kill(pid, 0), 0);
  Open();  // the next service, which may listen elsewhere, has one of its own
  EXPECT_NE(::kill(pid, 0), 0);
  const std::vector<std::string> both = AwaitCollectors("a.1", 2);
  ASSERT_THAT(both, SizeIs(2));
  ASSERT_TRUE(engine_->Stop("a.1", absl::Seconds(1)).ok());
  AwaitEnd("a.1");
  ASSERT_TRUE(engine_->Release("a.1").ok());
  EXPECT_NE(::kill(std::atoi(both[1].c_str()), 0), 0);
}

TEST_F(SlurmEngineTest, ACollectorThatEndsIsFollowedByAnother) {
  OpenWithService("http://10.1.0.1:6280", spec::Reach::kFolder);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  const std::vector<std::string> first = AwaitCollectors("a.1", 1);
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(PlanOf("a.1", 0).service_file, "");
  ASSERT_EQ(::kill(std::atoi(first[0].c_str()), SIGKILL), 0);
  EXPECT_THAT(AwaitCollectors("a.1", 2), SizeIs(2));
}

TEST_F(SlurmEngineTest, LaunchersThatAreToReachTheServiceWaitForAnAddress) {
  OpenWithService("http://127.0.0.1:6280", spec::Reach::kService);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  Await("a.1", [](const AllocationState& s) {
    return absl::StrContains(s.reason, "which the nodes cannot reach");
  });
  OpenWithService("http://10.1.0.1:6280", spec::Reach::kService);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  EXPECT_THAT(PlanOf("a.1", 0).service_file, HasSubstr("shared/launcher.json"));
  EXPECT_THAT(Collectors("a.1"), IsEmpty());
}

TEST_F(SlurmEngineTest, ListsTheNodesThatSlurmTellsOf) {
  const auto nodes = engine_->ListNodes();
  ASSERT_EQ(nodes.status(), absl::OkStatus());
  ASSERT_THAT(*nodes, SizeIs(2));
  EXPECT_EQ(nodes->front().name, "n1");
  EXPECT_EQ(nodes->front().state, "running");
  slurm_.SetFault("sinfo", Fault::kDown);
  EXPECT_THAT(engine_->ListNodes().status(),
              AllOf(testing::Property(&absl::Status::code, absl::StatusCode::kUnavailable),
                    testing::Property(&absl::Status::message, HasSubstr("Unable to contact"))));
}

TEST_F(SlurmEngineTest, SaysThatNoNodeHasTheGpusThatAreAskedForWhereSlurmKnowsIt) {
  const auto soon = [] { return base::Deadline::After(base::Patient(absl::Seconds(20))); };
  spec::SlurmSettings job;
  EXPECT_EQ(engine_->WhyNeverOn(job, soon()), "");
  const std::pair<std::string, spec::SlurmSettings> kAsking[] = {
      {"gres nvme:1,gpu:a100:2", {.gres = "nvme:1,gpu:a100:2"}},
      {"--gres=gpu:1", {.options = {"--comment=gpu", "--gres=gpu:1"}}},
      {"--gpus-per-task=1", {.shape = {"--ntasks=2", "--gpus-per-task=1"}}}};
  for (auto [asked, settings] : kAsking) {
    slurm_.SetGres("(null)\n");
    EXPECT_THAT(engine_->WhyNeverOn(settings, soon()),
                HasSubstr(asked + " asks for GPUs, and no node of partition main has any"));
    slurm_.SetFault("sinfo", Fault::kDown);
    settings.partition = absl::StrCat("unknown", asked);
    EXPECT_EQ(engine_->WhyNeverOn(settings, soon()), "");
    slurm_.SetFault("sinfo", Fault::kNone);
    settings.partition = absl::StrCat("of ", asked);
    slurm_.SetGres("(null)\ngpu:a100:4(S:0-1)\n");
    const int asked_before = slurm_.count("sinfo");
    EXPECT_EQ(engine_->WhyNeverOn(settings, soon()), "");
    EXPECT_EQ(engine_->WhyNeverOn(settings, soon()), "");
    EXPECT_EQ(slurm_.count("sinfo"), asked_before + 1) << "for a while it is taken as known";
  }
}

}  // namespace
}  // namespace tutti::engine
