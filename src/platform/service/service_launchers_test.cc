// Tests what launchers say, and what is done about those that die, hang or never say a word.
// Covers: launcher_reports.cc, allocation/launcher_silence.cc, allocation/leaving_allocations.cc,
// allocation/engine_calls.cc, allocation/observation_schedule.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/test_patience.h"
#include "platform/service/results/disk_room.h"
#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

using store::JobState;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ServiceTest, FailsAJobThatCannotBeStarted) {
  world_.engine().fail_start = absl::ResourceExhaustedError("no space left on n1");
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kFailed);
  EXPECT_THAT(world_.Reason("j"), HasSubstr("no space left on n1"));
}

// The file system does not tell of it: only what is written meets it.
TEST_F(ServiceTest, AJobThatAQuotaKeepsFromItsStartWaits) {
  const auto file = folder_.path() / "nodes/n1/j.1/plan.json";
  world_.engine().fail_start = base::ErrnoStatus(absl::StrCat("write ", file.native()), EDQUOT);
  ASSERT_TRUE(world_.Submit().ok());
  for (int i = 0; i < 5; ++i) world_.Step();
  EXPECT_EQ(world_.State("j"), JobState::kProvisioning);
  EXPECT_THAT(service().GetJob("j")->reason,
              AllOf(HasSubstr("it waits to be started: "), HasSubstr("Disk quota exceeded")));
  world_.engine().fail_start = absl::OkStatus();
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kCompleted) << world_.Reason("j");
}

TEST_F(ServiceTest, AJobThatTheDiskOfANodeAloneKeepsFromItsStartFails) {
  world_.engine().fail_start = base::ErrnoStatus("write /scratch/n1/j.1/plan.json", ENOSPC);
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_THAT(world_.Reason("j"), HasSubstr("No space left on device"));
}

TEST_F(ServiceTest, RecoversTheSpoolOfALauncherThatDiedAndFailsTheJob) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  world_.launchers().Kill(world_.engine().Allocations().at(0), 1);
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kFailed);
  EXPECT_EQ(world_.Reason("j"), "launcher on node n2 died (it was killed)");
  EXPECT_EQ(world_.engine().Starts().size(), 2u);  // the second launcher ran nothing
}

TEST_F(ServiceTest, CompletesAJobWhoseLauncherDiedWhenItsWorkWasDone) {
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kFinalizing));
  const std::string id = world_.engine().Allocations().at(0);
  const auto spool = world_.engine().root() / id / "spool-1";
  const auto finished = [&] {
    return base::ReadFile(spool).value().find("finished") != std::string::npos;
  };
  // It has written `finished` and dies before it can deliver it.
  while (!finished()) world_.launchers().Step(service(), world_.clock().Now());
  world_.launchers().Kill(id, 1);
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kCompleted) << world_.Reason("j");
}

TEST_F(ServiceTest, RecoversWhatADeadLauncherLeftOnceItsFolderCanBeWrittenToAgain) {
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kFinalizing));
  const std::string id = world_.engine().Allocations().at(0);
  const auto spool = world_.engine().root() / id / "spool-1";
  while (base::ReadFile(spool).value().find("finished") == std::string::npos) {
    world_.launchers().Step(service(), world_.clock().Now());
  }
  // Each launcher that is started in these ten seconds finds that it can not write, and ends.
  for (const absl::Time until = world_.clock().Now() + absl::Seconds(10);
       world_.clock().Now() < until; world_.clock().Advance(absl::Milliseconds(200))) {
    world_.launchers().Kill(id, 1);
    world_.launchers().Step(service(), world_.clock().Now());
    service().Tick();
  }
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kCompleted) << world_.Reason("j");
}

TEST_F(ServiceTest, GivesUpOnANodeWhoseLaunchersDieAgainAndAgain) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  const std::string id = world_.engine().Allocations().at(0);
  for (int i = 0; i < 200 && !IsEnd(world_.State("j")); ++i) {
    service().Tick();
    world_.launchers().Kill(id, 1);  // before it has said a word
    world_.launchers().Step(service(), world_.clock().Now());
    world_.clock().Advance(absl::Milliseconds(200));
  }
  EXPECT_EQ(world_.Reason("j"), "launcher on node n2 died (what it had not yet sent is lost)");
  EXPECT_TRUE(world_.StepUntilOver("j"));
}

TEST_F(ServiceTest, StopsALauncherThatIsStartedForAJobThatIsEnding) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  world_.launchers().silent = true;
  ASSERT_TRUE(service().Cancel("j").ok());
  service().Tick();
  const int stops = world_.engine().stop_calls;
  ASSERT_GT(stops, 0);
  service().Tick();
  EXPECT_EQ(world_.engine().stop_calls, stops);
  world_.launchers().Kill(world_.engine().Allocations().at(0), 1);
  service().Tick();
  EXPECT_GT(world_.engine().stop_calls, stops);
}

TEST_F(ServiceTest, NoticesADeadLauncherAlsoWhenTheClockIsSetBack) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  world_.launchers().Kill(world_.engine().Allocations().at(0), 1);
  world_.clock().Set(world_.clock().Now() - absl::Hours(2));
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kFailed);
}

TEST_F(ServiceTest, WhatHappenedToAJobStaysInItsOrderWhenTheClockIsSetBack) {
  const auto set_back = [this] { world_.clock().Set(world_.clock().Now() - absl::Hours(2)); };
  ASSERT_TRUE(world_.Submit().ok());
  set_back();
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kStarting));
  world_.Open();
  set_back();
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  set_back();
  ASSERT_TRUE(world_.StepUntilOver("j"));
  const auto events = world_.Events("j");
  EXPECT_TRUE(
      std::is_sorted(events.begin(), events.end(),
                     [](const store::Event& a, const store::Event& b) { return a.time < b.time; }));
  EXPECT_THAT(world_.FollowerOutput("j"),
              ElementsAre("=Queued", "=Provisioning", "=Preparing", "=Starting", "=Running",
                          "0:rank 0 begins", "0:rank 0 ends", "1:rank 1 begins", "1:rank 1 ends",
                          "=Finalizing", "0:rank 0 last", "1:rank 1 last", "=Completed"));
}

// What was printed last is known once the logs are open.
TEST_F(ServiceTest, WhatHappensNextComesBehindWhatWasPrintedToTheServiceBefore) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  const std::string allocation = world_.engine().Allocations().at(0);
  world_.clock().Advance(absl::Seconds(30));
  const auto printed = service().AppendOutput(allocation, 0, 0, LogStream::kStderr, 0, "late\n");
  ASSERT_TRUE(printed.ok()) << printed.status();
  world_.clock().Set(world_.clock().Now() - absl::Seconds(20));
  // The next service knows of a failure as soon as it begins.
  world_.launchers().script()[0] = {{"code", 3}};
  for (int i = 0; i < 2; ++i) world_.launchers().Step(service(), world_.clock().Now());
  world_.Open();
  ASSERT_TRUE(world_.StepUntilOver("j"));
  const std::vector<std::string> told = world_.FollowerOutput("j");
  const auto late = std::find(told.begin(), told.end(), "0:late");
  ASSERT_NE(late, told.end());
  EXPECT_NE(std::find(late, told.end(), "=Finalizing"), told.end()) << absl::StrJoin(told, " ");
}

TEST_F(ServiceTest, FailsAJobThatTheEngineHasLost) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  ASSERT_TRUE(world_.engine().Release(world_.engine().Allocations().at(0)).ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_THAT(world_.Reason("j"), HasSubstr("the engine has no trace of the allocation"));
}

TEST_F(ServiceTest, EndsAJobAtItsTimeLimitIfItsLaunchersDoNot) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  world_.clock().Advance(absl::Seconds(60));
  world_.Step();
  EXPECT_EQ(world_.State("j"), JobState::kRunning);
  world_.clock().Advance(absl::Seconds(45));
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_THAT(world_.Reason("j"),
              HasSubstr("the job reached its time limit of 1m (limits.timeout) and was ended"));
}

TEST_F(ServiceTest, MeasuresATimeLimitByAClockThatNobodySets) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  world_.clock().Set(world_.clock().Now() + absl::Hours(24));
  world_.Step();
  EXPECT_EQ(world_.State("j"), JobState::kRunning);
  world_.Open();
  world_.Step();
  EXPECT_EQ(world_.State("j"), JobState::kRunning) << "also by the next service";
  world_.clock().Set(world_.clock().Now() - absl::Hours(48));
  world_.clock().Advance(absl::Seconds(110));
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_THAT(world_.Reason("j"),
              HasSubstr("the job reached its time limit of 1m (limits.timeout) and was ended"));
}

TEST_F(ServiceTest, GivesUpOnLaunchersThatNeverReport) {
  world_.launchers().silent = true;
  ASSERT_TRUE(world_.Submit().ok());
  world_.Step();
  world_.Step();
  EXPECT_EQ(world_.State("j"), JobState::kProvisioning);
  world_.clock().Advance(absl::Minutes(3));
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kFailed));
  EXPECT_THAT(world_.Reason("j"), HasSubstr("has not reported within 2m"));
  EXPECT_EQ(service().ListNodes().nodes.at(0).job, "j");  // its launchers still hold the nodes
  world_.launchers().silent = false;
  ASSERT_TRUE(world_.StepUntilOver("j"));  // they are told 410 and end
  EXPECT_EQ(service().ListNodes().nodes.at(0).job, "");
}

TEST_F(ServiceTest, AWallClockThatIsSetAheadIsNoSilenceOfLaunchers) {
  world_.launchers().silent = true;
  ASSERT_TRUE(world_.Submit().ok());
  world_.Step();
  world_.clock().Set(world_.clock().Now() + absl::Hours(1));
  world_.Step();
  world_.Step();
  EXPECT_EQ(world_.State("j"), JobState::kProvisioning);
  world_.launchers().silent = false;
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kCompleted);
}

// The old allocation's launchers linger on while a new job has taken the name.
TEST_F(ServiceTest, KeepsAnEndedJobsLaunchersApartFromANewJobOfThatName) {
  world_.launchers().silent = true;
  ASSERT_TRUE(world_.Submit().ok());
  world_.Step();
  world_.clock().Advance(absl::Minutes(3));
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kFailed));
  ASSERT_TRUE(service().Delete("j").ok());
  ASSERT_TRUE(world_.Submit().ok());
  for (int i = 0; i < 3; ++i) {
    world_.clock().Advance(absl::Minutes(1));  // the old ones are told to stop again
    service().Tick();
  }
  EXPECT_EQ(world_.State("j"), JobState::kQueued);
  world_.launchers().silent = false;
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kCompleted);
  EXPECT_EQ(world_.engine().Starts().size(), 4u);
}

TEST_F(ServiceTest, GivesUpOnLaunchersThatDoNotStop) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  world_.launchers().silent = true;
  ASSERT_TRUE(service().Cancel("j").ok());
  world_.Step();
  world_.Step();
  EXPECT_EQ(world_.State("j"), JobState::kFinalizing);
  world_.clock().Advance(absl::Minutes(3));
  world_.engine().unkillable = true;
  world_.Step();
  EXPECT_EQ(world_.engine().kill_calls, 2);
  EXPECT_EQ(world_.State("j"), JobState::kFinalizing);
  world_.engine().left = "the containers on n1: podman rm: its storage is locked";
  world_.Step();
  for (int i = 0; i < 3; ++i) {
    world_.clock().Advance(absl::Minutes(3));
    world_.Step();
  }
  EXPECT_EQ(world_.State("j"), JobState::kFinalizing) << "what runs in them goes first";
  world_.engine().left = "";
  world_.Step();
  world_.clock().Advance(absl::Minutes(3));
  EXPECT_TRUE(world_.StepUntilState("j", JobState::kCanceled));
}

TEST_F(ServiceTest, KillsLaunchersThatDoNotStopAndHasWhatTheyLeftDelivered) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  world_.launchers().silent = true;
  world_.clock().Advance(absl::Minutes(2));
  world_.Step();  // its time limit
  world_.Step();
  world_.clock().Advance(absl::Minutes(3));
  world_.Step();
  EXPECT_EQ(world_.engine().kill_calls, 2);
  world_.launchers().silent = false;
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_THAT(world_.Reason("j"), HasSubstr("time limit of 1m"));
  EXPECT_EQ(service().ListNodes().nodes.at(0).job, "");
}

TEST_F(ServiceTest, KillsLaunchersThatOutliveTheirJob) {
  world_.launchers().silent = true;
  ASSERT_TRUE(world_.Submit().ok());
  world_.Step();
  world_.clock().Advance(absl::Minutes(3));
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kFailed));
  for (int i = 0; i < 5; ++i) {
    world_.clock().Advance(absl::Minutes(1));
    service().Tick();
  }
  EXPECT_GE(world_.engine().kill_calls, 2);
  EXPECT_TRUE(world_.engine().Allocations().empty());
  EXPECT_EQ(service().ListNodes().nodes.at(0).job, "");
}

// Either way the launchers that outlive their job have their time, and no more.
TEST_F(ServiceTest, KillsLaunchersThatOutliveTheirJobWhateverTheWallClockSays) {
  for (const absl::Duration by : {absl::Hours(24), -absl::Hours(48)}) {
    world_.engine().kill_calls = 0;
    world_.launchers().silent = true;
    const auto job = world_.Submit();
    ASSERT_TRUE(job.ok()) << job.status();
    world_.Step();
    world_.clock().Advance(absl::Minutes(3));
    const std::string id = job->record.job.id;
    ASSERT_TRUE(world_.StepUntilState(id, JobState::kFailed));
    world_.Step();
    world_.clock().Set(world_.clock().Now() + by);
    world_.clock().Advance(absl::Seconds(31));
    world_.Step();
    EXPECT_EQ(world_.engine().kill_calls, 0) << by;
    for (int i = 0; i < 5; ++i) {
      world_.clock().Advance(absl::Minutes(1));
      service().Tick();
    }
    EXPECT_GE(world_.engine().kill_calls, 2) << by;
    EXPECT_TRUE(world_.engine().Allocations().empty()) << by;
    ASSERT_TRUE(service().Delete(id).ok());
  }
}

TEST_F(ServiceTest, WaitsForALauncherThatSendsALargeFile) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  world_.launchers().silent = true;
  ASSERT_TRUE(service().Cancel("j").ok());
  world_.Step();
  const std::string id = world_.engine().Allocations().at(0);
  auto slow = service().ReceiveFile(id, 0, "outputs/large", 0, "");
  auto other = service().ReceiveFile(id, 1, "outputs/large", 0, "");
  for (int minute = 0; minute < 10; ++minute) {
    world_.clock().Advance(absl::Minutes(1));
    ASSERT_TRUE((*slow)->Write("piece").ok());
    ASSERT_TRUE((*other)->Write("piece").ok());
    service().Tick();
    ASSERT_EQ(world_.State("j"), JobState::kFinalizing);
  }
  world_.launchers().silent = false;
  EXPECT_TRUE(world_.StepUntilOver("j"));
}

class SendsOfTwoNodes : public ServiceTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(SendsOfTwoNodes, KeepBothFilesOfOneNameAndTheFirstNodesHasIt) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  const std::string id = world_.engine().Allocations().at(0);
  for (const char digit : absl::string_view(GetParam())) {
    const std::string text(1, digit);
    const int node = digit - '1';
    auto large = service().ReceiveFile(id, node, "outputs/large", 0, "");
    ASSERT_TRUE(large.ok()) << large.status();
    EXPECT_TRUE((*large)->Write(text).ok());
    EXPECT_TRUE((*large)->Commit().ok());
    EXPECT_TRUE(service()
                    .ReceiveFiles(id, node,
                                  {{.name = "outputs/final.json", .bytes = text},
                                   {.name = "outputs/same", .bytes = "same"}},
                                  "")
                    .ok());
  }
  world_.launchers().script() = {};
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_THAT(service().GetJob("j")->reason,
              testing::EndsWith("; note: nodes wrote different files of one name, all of which "
                                "are kept: outputs/final.json (of n1), outputs/final.n2.json (of "
                                "n2), outputs/large (of n1), outputs/large.n2 (of n2)"));
  const std::filesystem::path outputs = service().files().FolderOf("j") / "outputs";
  EXPECT_EQ(*base::ReadFile(outputs / "final.json"), "1");
  EXPECT_EQ(*base::ReadFile(outputs / "final.n2.json"), "2");
  EXPECT_EQ(*base::ReadFile(outputs / "large"), "1");
  EXPECT_EQ(*base::ReadFile(outputs / "large.n2"), "2");
  EXPECT_FALSE(std::filesystem::exists(outputs / "same.n2"));
}

INSTANTIATE_TEST_SUITE_P(InEitherOrder, SendsOfTwoNodes, ::testing::Values("12", "21"));

// The first node sends what a job resumes from before any process begins.
TEST_F(ServiceTest, AnyNodesFileIsInThePlaceOfTheEarlierJobs) {
  world_.launchers().silent = true;
  ASSERT_TRUE(world_.Submit().ok());
  world_.Step();
  const std::string id = world_.engine().Allocations().at(0);
  const auto send = [&](int node, const char* text) {
    EXPECT_TRUE(
        service().ReceiveFiles(id, node, {{.name = "outputs/log", .bytes = text}}, "").ok());
  };
  send(0, "of the earlier job");
  world_.launchers().silent = false;
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  send(1, "of this one");
  const std::filesystem::path outputs = service().files().FolderOf("j") / "outputs";
  EXPECT_EQ(*base::ReadFile(outputs / "log"), "of this one");
  EXPECT_FALSE(std::filesystem::exists(outputs / "log.n2"));
}

TEST_F(ServiceTest, AJobWhoseResultsFindNoRoomSaysSo) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  const std::string id = world_.engine().Allocations().at(0);
  const auto never = service().ReceiveFile(id, 0, "outputs/large", uint64_t{1} << 60, "");
  EXPECT_TRUE(absl::IsOutOfRange(never.status())) << never.status();
  const uint64_t available = RoomOf(folder_.path()).available;
  const auto refused = service().ReceiveFile(id, 0, "outputs/large", available, "");
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_THAT(service().GetJob("j")->reason,
              testing::HasSubstr("its results wait on its nodes: the service's disk has "));
  world_.clock().Advance(absl::Seconds(11));
  EXPECT_THAT(service().GetJob("j")->reason, testing::Not(testing::HasSubstr("wait on its nodes")));
  EXPECT_TRUE(service().ReceiveFile(id, 0, "outputs/large", 100, "").ok());
}

TEST_F(ServiceTest, WaitsOutAnEngineThatCannotBeObserved) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  world_.engine().fail_observe = absl::UnavailableError("slurmctld does not answer");
  for (int i = 0; i < 5; ++i) world_.Step();
  EXPECT_EQ(world_.State("j"), JobState::kRunning);
  world_.engine().fail_observe = absl::OkStatus();
  world_.launchers().script() = {};
  EXPECT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kCompleted);
}

TEST_F(ServiceTest, AnswersRepeatedAndWrongReportsOfLaunchers) {
  ASSERT_TRUE(world_.Submit().ok());
  world_.launchers().silent = true;
  world_.Step();
  const std::string id = world_.engine().Allocations().at(0);
  const std::vector<std::string> two = {R"({"kind":"preparing","time":1})",
                                        R"({"kind":"prepared","time":2})"};
  EXPECT_EQ(service().ReportEvents(id, 0, 1, two)->acknowledged, 2);
  EXPECT_EQ(service().ReportEvents(id, 0, 1, two)->acknowledged, 2);
  EXPECT_EQ(service().ReportEvents(id, 0, 5, two)->acknowledged, 2);  // a gap
  EXPECT_EQ(service().ReportEvents(id, 0, 2, {two[1], R"({"kind":"new kind"})"})->acknowledged, 3);
  for (const char* line : {"", "no json", "[]", "{}", R"({"kind":1})", R"({"kind":"x","time":"y"})",
                           R"({"kind":"exited","rank":1})", R"({"kind":"started"})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(service().ReportEvents(id, 0, 4, {line}).status())) << line;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(service().ReportEvents(id, 2, 1, two).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(service().ReportEvents(id, -1, 1, two).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(service().ReportEvents(id, 0, 0, two).status()));
  for (const char* unknown : {"j.999", "j", "", ".1", "nobody.1"}) {
    EXPECT_TRUE(absl::IsAborted(service().ReportEvents(unknown, 0, 1, two).status())) << unknown;
    EXPECT_TRUE(absl::IsAborted(service().MayGo(unknown, 0).status())) << unknown;
    EXPECT_TRUE(absl::IsAborted(
        service().AppendOutput(unknown, 0, 0, LogStream::kStdout, 0, "x").status()));
    EXPECT_TRUE(absl::IsAborted(service().ReceiveFile(unknown, 0, "outputs/x", 0, "").status()));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(
      service().AppendOutput(id, 0, 1, LogStream::kStdout, 0, "x").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(service().ReceiveFile(id, 0, "../x", 0, "").status()));
}

TEST_F(ServiceTest, AcknowledgesAgainWhatAnEndedJobHas) {
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  const std::string id = world_.engine().Allocations().at(0);
  ASSERT_TRUE(world_.StepUntilOver("j"));
  const auto lines = *world_.store().LauncherEvents(id, 0);
  EXPECT_EQ(service().ReportEvents(id, 0, 1, lines)->acknowledged,
            static_cast<int64_t>(lines.size()));
  EXPECT_TRUE(absl::IsAborted(
      service().ReportEvents(id, 0, lines.size() + 1, {R"({"kind":"x"})"}).status()));
}

TEST_F(ServiceTest, LetsTheGangGoWhenEveryNodeIsPrepared) {
  ASSERT_TRUE(world_.Submit().ok());
  world_.launchers().silent = true;
  world_.Step();
  const std::string id = world_.engine().Allocations().at(0);
  const std::string prepared = R"({"kind":"prepared","time":2})";
  EXPECT_FALSE(service().ReportEvents(id, 0, 1, {prepared})->go);
  service().Tick();
  EXPECT_EQ(*service().MayGo(id, 0), Service::Go::kNotYet);
  std::atomic<int> news = 0;
  const auto subscription = service().OnNewsOfAllocation(id, 0, [&] { ++news; });
  ASSERT_TRUE(subscription.ok()) << subscription.status();
  EXPECT_TRUE(service().AppendOutput(id, 0, 0, LogStream::kStdout, 0, "preparing\n").ok());
  EXPECT_EQ(news, 0) << "output lets nobody go";
  ASSERT_TRUE(service().ReportEvents(id, 1, 1, {prepared}).ok());
  service().Tick();
  EXPECT_GE(news, 1);
  EXPECT_EQ(*service().MayGo(id, 0), Service::Go::kYes);
  EXPECT_EQ(world_.State("j"), JobState::kStarting);
  ASSERT_TRUE(service().Cancel("j").ok());
  EXPECT_EQ(*service().MayGo(id, 0), Service::Go::kNever);
}

}  // namespace
}  // namespace tutti::service
