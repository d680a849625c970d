// An engine whose calls hang, as on a file server that is away: nothing else waits for it.
// Covers: service_core.cc, allocation/engine_calls.cc, allocation/job_output.cc,
// jobs/shared_state.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <tuple>

#include "absl/synchronization/notification.h"
#include "base/test_patience.h"
#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

using store::JobState;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kOnCluster[] =
    "type: command\nname: c\ncommand: echo hi\ncompute: hpc\nresources:\n  instance_count: 1\n";

// Each of its calls but ListNodes waits until it is released.
class HungEngine final : public engine::Engine {
 public:
  engine::EngineTraits traits() const override { return {.schedules_itself = true}; }
  absl::StatusOr<std::vector<engine::Node>> ListNodes() override {
    return std::vector<engine::Node>();
  }
  absl::Status Start(const engine::Allocation&) override {
    ++starts_;
    return Hang();
  }
  absl::Status Stop(const std::string&, absl::Duration) override { return Hang(); }
  absl::Status Kill(const std::string&, int) override { return Hang(); }
  absl::StatusOr<std::vector<engine::AllocationState>> Observe() override {
    Hang().IgnoreError();
    return std::vector<engine::AllocationState>();
  }
  void Refresh() override { Hang().IgnoreError(); }
  absl::Status Release(const std::string&) override { return Hang(); }

  void Let() {
    if (!released_.HasBeenNotified()) released_.Notify();
  }
  int calls() const { return calls_; }
  int starts() const { return starts_; }

 private:
  absl::Status Hang() {
    ++calls_;
    released_.WaitForNotification();
    return absl::OkStatus();
  }
  std::atomic<int> calls_ = 0, starts_ = 0;
  absl::Notification released_;
};

class ServiceHangTest : public ::testing::Test {
 protected:
  ServiceHangTest() {
    DiskEngine::Put(folder_.path() / "site.yml",
                    "computes: {hpc: {type: slurm, folder: ./shared}}\n");
  }
  void SetUp() override {
    world_.service().Run();
    ASSERT_TRUE(StepUntil([&] { return engine_.calls() > 0; }));  // it is being looked at
  }
  ~ServiceHangTest() override { engine_.Let(); }

  template <typename Condition>
  bool StepUntil(const Condition& condition) {
    const auto deadline = base::Deadline::After(base::Patient(absl::Seconds(20)));
    while (!condition() && !deadline.Expired()) {
      world_.clock().Advance(absl::Milliseconds(5));
      world_.launchers().Step(world_.service(), world_.clock().Now());
      std::this_thread::yield();
    }
    return condition();
  }

  base::TemporaryDirectory folder_;
  HungEngine engine_;
  World world_{folder_.path(), {}, 2, &engine_};
};

TEST_F(ServiceHangTest, AJobOfAnotherComputeComesAndEnds) {
  ASSERT_TRUE(world_.Submit(kOnCluster).ok());
  ASSERT_TRUE(world_.Submit().ok());
  EXPECT_TRUE(StepUntil([&] { return IsEnd(world_.State("j")); }));
  EXPECT_EQ(world_.State("j"), JobState::kCompleted);
  EXPECT_EQ(world_.State("c"), JobState::kQueued);
  EXPECT_TRUE(world_.service().Delete("j").ok());
}

TEST_F(ServiceHangTest, ItsJobsAreTakenShownAndCanceled) {
  const auto status = world_.Submit(kOnCluster);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(world_.service().ListJobs({})->size(), 1u);
  const auto told =
      world_.service().ReportEvents(absl::StrCat("c.", status->record.job.sequence), 0, 1, {"{}"});
  EXPECT_THAT(told.status().ToString(), HasSubstr("is being placed"));
  EXPECT_EQ(world_.service().Cancel("c")->record.last.state, JobState::kCanceled);
}

TEST_F(ServiceHangTest, StartsWhatWasNotCanceledMeanwhileOnceItAnswers) {
  ASSERT_TRUE(world_.Submit(kOnCluster).ok());
  const int calls = engine_.calls();
  ASSERT_TRUE(world_.service().Cancel("c").ok());
  engine_.Let();
  EXPECT_TRUE(StepUntil([&] { return engine_.calls() > calls + 2; })) << "it is looked at again";
  EXPECT_EQ(engine_.starts(), 0);
}

TEST_F(ServiceHangTest, SnapshotsThatHangAreSaidToAndHoldNoOtherSubmission) {
  const std::string name = "sha256:" + std::string(64, 'a');
  absl::Notification begun;
  const auto until = std::make_shared<absl::Notification>();
  EXPECT_TRUE(world_.service()
                  .DoFileWork(Service::FileWork::kSnapshots, name,
                              [&begun, until] {
                                begun.Notify();
                                until->WaitForNotification();
                              })
                  .ok());
  begun.WaitForNotification();
  const auto refused = world_.service().Submit(
      {.text = "command: echo hi\n", .base_directory = "/", .snapshot = name});
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
  EXPECT_TRUE(world_.Submit().ok());
  until->Notify();
}

TEST_F(ServiceHangTest, FileWorkOfAJobIsDoneInItsOrderBesideThatOfOthersThatHangs) {
  const auto until = std::make_shared<absl::Notification>();
  absl::Notification begun, behind, other;
  const auto output = [&](const std::string& job, std::function<void()> work) {
    EXPECT_TRUE(world_.service().DoFileWork(Service::FileWork::kOutput, job, std::move(work)).ok());
  };
  output("hung", [&begun, until] {
    begun.Notify();
    until->WaitForNotification();
  });
  begun.WaitForNotification();
  output("hung", [&behind] { behind.Notify(); });
  output("other", [&other] { other.Notify(); });
  EXPECT_TRUE(other.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(10))));
  EXPECT_FALSE(behind.HasBeenNotified());
  until->Notify();
  EXPECT_TRUE(behind.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(10))));
}

// The folders of jobs and of snapshots lie on a server that is away until it is let: whoever asks
// it waits, while the folders themselves go on, so that nothing else holds a call up.
class AwayFolderTest : public ServiceTest {
 protected:
  AwayFolderTest() {
    const auto mounts = std::make_shared<const std::vector<base::Mount>>(
        std::vector<base::Mount>{{"/", "ext4", "", 1},
                                 {(folder_.path() / "jobs").native(), "nfs", "", 2},
                                 {(folder_.path() / "snapshots").native(), "nfs", "", 3}});
    world_.folder_questions.mounts = [mounts] { return mounts; };
    world_.folder_questions.ask = [answers = answers_](const std::string&) {
      answers->WaitForNotification();
      return absl::OkStatus();
    };
  }
  ~AwayFolderTest() override { Let(); }
  void SetUp() override {
    ASSERT_TRUE(world_.Submit().ok());
    ASSERT_TRUE(world_.StepUntilOver("j"));
    world_.Open();
    service().Run();
    ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20),
                                     [&] { return service().AwayFolders().size() == 2; }));
  }
  void Let() {
    if (!answers_->HasBeenNotified()) answers_->Notify();
  }

  const std::shared_ptr<absl::Notification> answers_ = std::make_shared<absl::Notification>();
};

TEST_F(AwayFolderTest, CallsThatNeedOneAreAnsweredAtOnceWithTheReason) {
  const std::string name = "sha256:" + std::string(64, 'a');
  const auto never = [] { ADD_FAILURE() << "nobody waits for it"; };
  EXPECT_FALSE(
      service().ReadFilesOf("j", never, base::Deadline::After(base::Patient(absl::Seconds(20)))));
  for (const auto& [kind, queue, folder] :
       {std::tuple{Service::FileWork::kReading, std::string("j/2"), "jobs"},
        std::tuple{Service::FileWork::kOutput, std::string("j"), "jobs"},
        std::tuple{Service::FileWork::kSnapshots, name, "snapshots"}}) {
    const absl::Status refused = service().DoFileWork(kind, queue, never).status();
    EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
    EXPECT_THAT(refused.message(), HasSubstr(absl::StrCat("/", folder, " has not answered since")));
    EXPECT_TRUE(absl::IsUnavailable(service().AwaitFolder(kind, queue)));
  }
  const auto refused =
      service().Submit({.text = "command: echo hi\n", .base_directory = "/", .snapshot = name});
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
  EXPECT_THAT(refused.status().message(), HasSubstr("/snapshots has not answered since"));
  EXPECT_TRUE(service().Prune({.dry_run = true}).ok());
  EXPECT_THAT(service().Problems(),
              Contains(AllOf(HasSubstr("what is kept on this machine cannot be looked at"),
                             HasSubstr("has not answered since"))));
  EXPECT_TRUE(service().CheckFolder(Service::FileWork::kSecrets, "").ok()) << "it lies elsewhere";
}

TEST_F(AwayFolderTest, IsSaidSinceWhen) {
  const std::vector<AwayFolder> away = service().AwayFolders();
  EXPECT_THAT(away[0].names, ElementsAre("jobs"));
  EXPECT_THAT(away[1].names, ElementsAre("snapshots"));
  EXPECT_THAT(service().Problems(), Contains(HasSubstr("/jobs (jobs) has not answered since")));
  Let();
  EXPECT_TRUE(
      base::AwaitPatiently(absl::Seconds(20), [&] { return service().AwayFolders().empty(); }));
  EXPECT_THAT(service().Problems(), Not(Contains(HasSubstr("has not answered since"))));
}

TEST_F(AwayFolderTest, WhatWaitsForOneIsDoneOnceItAnswers) {
  const absl::Status told = service().Delete("j");
  if (!told.ok()) {  // unless its thread was quicker than who asked
    EXPECT_TRUE(absl::IsUnavailable(told)) << told;
    EXPECT_THAT(told.message(), AllOf(HasSubstr("j is still being deleted"),
                                      HasSubstr("/jobs has not answered since")));
  }
  EXPECT_TRUE(base::AwaitPatiently(
      absl::Seconds(20), [&] { return absl::IsNotFound(service().GetJob("j").status()); }));
}

}  // namespace
}  // namespace tutti::service
