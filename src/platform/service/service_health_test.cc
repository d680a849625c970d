// Nodes that are ill get no jobs, and jobs go elsewhere; nodes that are well are not blamed for
// jobs. Covers: allocation/node_health.cc, allocation/cordons.cc, jobs/next_attempt.cc,
// allocation/local_scheduler.cc, allocation/node_glance.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/notification.h"
#include "base/test_patience.h"
#include "platform/service/cluster_for_tests.h"
#include "platform/service/health/node_checker.h"
#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

using store::JobState;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kFull[] = "make /scratch/j.1/work: No space left on device";

// Finds what a test says, and may hang.
class PlayedChecker final : public NodeChecker {
 public:
  std::vector<health::NodeCheck> Check(const engine::Node& node, absl::Duration age) override {
    std::shared_ptr<absl::Notification> until;
    {
      absl::MutexLock lock(&mutex_);
      looks_.push_back(node.name);
      ages_[node.name] = age;
      if (node.name == hangs_) until = until_;
    }
    if (until != nullptr) until->WaitForNotification();
    absl::MutexLock lock(&mutex_);
    return found_.contains(node.name) ? found_.at(node.name)
                                      : std::vector<health::NodeCheck>{{"disk"}};
  }
  std::vector<health::NodeCheck> Glance(const engine::Node& node) override {
    absl::MutexLock lock(&mutex_);
    ++glances_[node.name];
    return glanced_.contains(node.name) ? glanced_.at(node.name) : std::vector<health::NodeCheck>();
  }
  absl::Duration glance_interval() const override {
    return glances ? absl::Seconds(5) : absl::InfiniteDuration();
  }
  void Accept() override { ++accepted; }
  absl::Duration interval() const override { return absl::Minutes(5); }
  absl::Duration patience() const override { return absl::Minutes(1); }

  void Find(const std::string& node, health::NodeCheck check) {
    absl::MutexLock lock(&mutex_);
    found_[node] = {std::move(check)};
  }
  void FindIll(const std::string& node, const std::string& name = "disk") {
    Find(node, {name, health::NodeCheck::Outcome::kIll, "it is broken"});
  }
  void FindWell(const std::string& node) { Find(node, {"disk"}); }
  void GlanceAt(const std::string& node, health::NodeCheck check) {
    absl::MutexLock lock(&mutex_);
    glanced_[node] = {std::move(check)};
  }
  size_t glances_of(const std::string& node) {
    absl::MutexLock lock(&mutex_);
    return glances_[node];
  }
  void Hang(const std::string& node) {
    absl::MutexLock lock(&mutex_);
    hangs_ = node;
  }
  void Let() {
    absl::MutexLock lock(&mutex_);
    hangs_.clear();
    if (!until_->HasBeenNotified()) until_->Notify();
  }
  size_t looks() {
    absl::MutexLock lock(&mutex_);
    return looks_.size();
  }
  bool HasLookedAt(const std::string& node) {
    absl::MutexLock lock(&mutex_);
    return std::find(looks_.begin(), looks_.end(), node) != looks_.end();
  }
  // How old what is told may be, at the last look at that node.
  absl::Duration AgeFor(const std::string& node) {
    absl::MutexLock lock(&mutex_);
    return ages_.at(node);
  }
  int accepted = 0;
  std::atomic<bool> glances = false;

 private:
  absl::Mutex mutex_;
  std::map<std::string, std::vector<health::NodeCheck>> found_, glanced_;
  std::map<std::string, size_t> glances_;
  std::vector<std::string> looks_;
  std::map<std::string, absl::Duration> ages_;
  std::string hangs_;
  std::shared_ptr<absl::Notification> until_ = std::make_shared<absl::Notification>();
};

class CordonRecorder final : public EventListener {
 public:
  void OnEvent(const store::Job&, const store::Event&, const EventDetail&) override {}
  void OnCordon(const store::Cordon& cordon, bool is_on) override {
    told.push_back(absl::StrCat(is_on ? "+" : "-", cordon.node, " ", Name(cordon.author)));
  }
  std::vector<std::string> told;
};

class ServiceHealthTest : public ::testing::Test {
 protected:
  NodeStatus Node(const std::string& name) {
    for (const NodeStatus& node : world_.service().ListNodes().nodes) {
      if (node.node.name == name) return node;
    }
    return {};
  }
  bool IsCordoned(const std::string& name) { return !Node(name).cordoned_by.empty(); }
  // So that whatever is due by then has been looked at, every second one node.
  void Pass(absl::Duration time) {
    world_.clock().Advance(time);
    for (int i = 0; i < 12; ++i) world_.Step();
  }
  static std::string Job(const std::string& name, int retries = 0,
                         const std::string& command = "") {
    return absl::StrCat(
        "type: command\nname: ", name, "\ncommand: echo ", command.empty() ? name : command,
        "\nresources: {instance_count: 1}\nretry_settings: {max_retries: ", retries, "}\n");
  }
  // A job of a work of its own, whose launcher dies on the node that it gets.
  std::string LoseOne(const std::string& name, const std::string& command = "") {
    world_.launchers().script() = {{0, nullptr}};
    EXPECT_TRUE(world_.Submit(Job(name, 0, command)).ok());
    EXPECT_TRUE(world_.StepUntilState(name, JobState::kRunning));
    const std::string node = world_.service().GetJob(name)->nodes.at(0);
    world_.launchers().Kill(world_.engine().Allocations().back(), 0);
    EXPECT_TRUE(world_.StepUntilOver(name));
    EXPECT_EQ(world_.State(name), JobState::kFailed);
    return node;
  }

  base::TemporaryDirectory folder_;
  PlayedChecker checker_;
  CordonRecorder recorder_;
  World world_{folder_.path(), {}, 2, nullptr, {&recorder_}, &checker_};
};

TEST_F(ServiceHealthTest, ANodeThatALookFindsIllGetsNoJobsUntilOneFindsItWell) {
  checker_.FindIll("n1");
  Pass(absl::ZeroDuration());
  EXPECT_EQ(Node("n1").node.state, "cordoned");
  EXPECT_EQ(Node("n1").node.reason, "disk: it is broken");
  EXPECT_EQ(Node("n1").cordoned_by, "check");
  EXPECT_THAT(
      world_.service().Problems(),
      Contains("node n1 is ill and gets no jobs: disk: it is broken (tutti node check n1)"));
  ASSERT_TRUE(world_.Submit(Job("a")).ok());
  ASSERT_TRUE(world_.StepUntilOver("a"));
  EXPECT_THAT(world_.service().GetJob("a")->nodes, ElementsAre("n2"));
  world_.Open();  // it outlives the service
  EXPECT_TRUE(IsCordoned("n1"));
  checker_.FindWell("n1");
  Pass(absl::Seconds(11));
  EXPECT_FALSE(IsCordoned("n1"));
  EXPECT_LE(checker_.AgeFor("n1"), absl::Seconds(10)) << "not what was found while it was ill";
  EXPECT_THAT(world_.service().Problems(), IsEmpty());
  EXPECT_THAT(recorder_.told, ElementsAre("+n1 check", "-n1 check"));
}

TEST_F(ServiceHealthTest, AUsersCordonIsNoChecksToTakeOff) {
  ASSERT_TRUE(world_.service().Cordon("local", "n1", "a fan is loud").ok());
  Pass(absl::Minutes(6));
  EXPECT_TRUE(checker_.HasLookedAt("n1"));
  EXPECT_EQ(Node("n1").node.reason, "a fan is loud");
  EXPECT_EQ(Node("n1").cordoned_by, "user");
}

TEST_F(ServiceHealthTest, WhatAUserAcceptsCordonsTheNodeAgainOnlyOnceItHasPassed) {
  checker_.FindIll("n1", "gpu");
  Pass(absl::ZeroDuration());
  ASSERT_TRUE(world_.service().Uncordon("local", "n1").ok());
  EXPECT_EQ(checker_.accepted, 1);
  Pass(absl::Minutes(6));
  EXPECT_FALSE(IsCordoned("n1"));
  checker_.FindIll("n1", "link");  // something else
  Pass(absl::Minutes(6));
  EXPECT_EQ(Node("n1").node.reason, "link: it is broken");
  checker_.FindWell("n1");
  Pass(absl::Seconds(11));
  checker_.FindIll("n1", "gpu");
  Pass(absl::Minutes(6));
  EXPECT_EQ(Node("n1").node.reason, "gpu: it is broken");
}

TEST_F(ServiceHealthTest, WhatCannotBeLookedAtIsAProblemAndNoFaultOfTheNode) {
  checker_.Find("n1", {"program", health::NodeCheck::Outcome::kUnknown, "/opt/chekc: not found"});
  Pass(absl::ZeroDuration());
  EXPECT_FALSE(IsCordoned("n1"));
}

TEST_F(ServiceHealthTest, LooksAfterJobsAndWhileIdleButNeverBeforeAStart) {
  Pass(absl::ZeroDuration());
  Pass(absl::Seconds(2));
  ASSERT_EQ(checker_.looks(), 2U);
  Pass(absl::Minutes(1));
  EXPECT_EQ(checker_.looks(), 2U);
  world_.clock().Advance(absl::Minutes(10));  // both are due
  ASSERT_TRUE(world_.Submit(Job("a")).ok());
  EXPECT_EQ(world_.State("a"), JobState::kProvisioning);
  EXPECT_EQ(checker_.looks(), 2U);
  ASSERT_TRUE(world_.StepUntilOver("a"));
  Pass(absl::Seconds(2));
  const size_t looks = checker_.looks();
  ASSERT_TRUE(world_.Submit(Job("b")).ok());
  ASSERT_TRUE(world_.StepUntilOver("b"));
  Pass(absl::Seconds(30));
  EXPECT_EQ(checker_.looks(), looks);  // a minute apart at most
  Pass(absl::Seconds(31));
  EXPECT_EQ(checker_.looks(), looks + 1);
}

TEST_F(ServiceHealthTest, ANodeThatBecomesIllWhileItIsFreeGetsNoJob) {
  Pass(absl::ZeroDuration());
  Pass(absl::Seconds(2));
  ASSERT_EQ(checker_.looks(), 2U);
  checker_.glances = true;
  checker_.GlanceAt("n1", {"gpu", health::NodeCheck::Outcome::kIll, "GPU 0 had XID 48"});
  ASSERT_TRUE(world_.StepUntil([&] { return IsCordoned("n1"); }));
  EXPECT_EQ(Node("n1").node.reason, "gpu: GPU 0 had XID 48");
  EXPECT_EQ(Node("n1").cordoned_by, "check");
  EXPECT_FALSE(IsCordoned("n2"));
  ASSERT_TRUE(world_.Submit(Job("a")).ok());
  ASSERT_TRUE(world_.StepUntilOver("a"));
  EXPECT_THAT(world_.service().GetJob("a")->nodes, ElementsAre("n2"));
  checker_.GlanceAt("n1", {"gpu"});
  EXPECT_TRUE(world_.StepUntil([&] { return !IsCordoned("n1"); })) << "a look finds it well";
}

TEST_F(ServiceHealthTest, AGlanceClearsNothingAndLeavesWhatAUserHasAccepted) {
  checker_.glances = true;
  const auto glance_twice = [&] {  // the second has begun after what was played before
    const size_t before = checker_.glances_of("n1");
    EXPECT_TRUE(world_.StepUntil([&] { return checker_.glances_of("n1") > before + 1; }));
  };
  checker_.FindIll("n1", "gpu");
  ASSERT_TRUE(world_.StepUntil([&] { return IsCordoned("n1"); }));
  ASSERT_TRUE(world_.service().Uncordon("local", "n1").ok());
  glance_twice();
  checker_.GlanceAt("n1", {"gpu", health::NodeCheck::Outcome::kIll, "it is broken"});
  glance_twice();
  EXPECT_FALSE(IsCordoned("n1")) << "it was accepted";
  checker_.GlanceAt("n1", {"gpu"});
  glance_twice();
  Pass(absl::Minutes(6));
  EXPECT_FALSE(IsCordoned("n1")) << "it was, and a look has not found it well";
  checker_.GlanceAt("n1", {"disk", health::NodeCheck::Outcome::kIll, "it is full", true});
  glance_twice();
  EXPECT_FALSE(IsCordoned("n1")) << "who writes there says so";
  checker_.GlanceAt("n1", {"disk", health::NodeCheck::Outcome::kIll, "it is broken"});
  EXPECT_TRUE(world_.StepUntil([&] { return IsCordoned("n1"); }));
  const size_t before = checker_.glances_of("n1");
  Pass(absl::Seconds(6));
  EXPECT_LE(checker_.glances_of("n1"), before + 1) << "a look is for one that is cordoned";
}

TEST_F(ServiceHealthTest, NoGlanceIsMadeBeforeAStart) {
  checker_.glances = true;
  Pass(absl::ZeroDuration());
  Pass(absl::Seconds(2));
  const size_t before = checker_.glances_of("n1");
  world_.clock().Advance(absl::Minutes(1));
  ASSERT_TRUE(world_.Submit(Job("a")).ok());
  EXPECT_EQ(world_.State("a"), JobState::kProvisioning);
  EXPECT_EQ(checker_.glances_of("n1"), before);
}

TEST_F(ServiceHealthTest, AUserMayLookNow) {
  checker_.FindIll("n2");
  const auto checks = world_.service().CheckNode("local", "n2");
  ASSERT_TRUE(checks.ok()) << checks.status();
  ASSERT_EQ(checks->size(), 1U);
  EXPECT_TRUE(checks->at(0).ill());
  EXPECT_TRUE(IsCordoned("n2"));
  EXPECT_TRUE(absl::IsNotFound(world_.service().CheckNode("local", "n7").status()));
  EXPECT_TRUE(absl::IsNotFound(world_.service().CheckNode("hpc", "n1").status()));
}

TEST_F(ServiceHealthTest, AJobThatANodesDiskKeptFromPreparingIsBegunAgainElsewhere) {
  world_.launchers().cannot_prepare = {{"n1", kFull}};
  ASSERT_TRUE(world_.Submit(Job("a", 1)).ok());
  ASSERT_TRUE(world_.StepUntil(
      [&] { return absl::StrContains(world_.History("a"), "Finalizing Queued"); }));
  world_.Open();  // also by a service that comes after
  ASSERT_TRUE(world_.StepUntilOver("a"));
  EXPECT_EQ(world_.State("a"), JobState::kCompleted) << world_.Reason("a");
  EXPECT_THAT(world_.service().GetJob("a")->nodes, ElementsAre("n2"));
  std::vector<std::string> reasons;
  for (const auto& event : world_.Events("a")) reasons.push_back(event.reason);
  EXPECT_THAT(reasons,
              Contains(HasSubstr("No space left on device; it is begun again, attempt 2 of 2")));
  EXPECT_FALSE(IsCordoned("n1")) << "no check finds anything, and one job is one witness";
}

TEST_F(ServiceHealthTest, SoIsOneWhoseLauncherCouldNotBeStartedThere) {
  world_.engine().fail_start =
      absl::ResourceExhaustedError("starting on n1: make /nodes/n1/a.1: No space left on device");
  ASSERT_TRUE(world_.Submit(Job("a", 1)).ok());
  ASSERT_TRUE(world_.StepUntil([&] { return world_.engine().start_calls > 0; }));
  world_.engine().fail_start = absl::OkStatus();
  ASSERT_TRUE(world_.StepUntilOver("a"));
  EXPECT_EQ(world_.State("a"), JobState::kCompleted) << world_.Reason("a");
  EXPECT_THAT(world_.service().GetJob("a")->nodes, ElementsAre("n2"));
}

TEST_F(ServiceHealthTest, TheFaultIsLookedIntoAtOnceAndTheNodeIsCordonedIfItIsIll) {
  Pass(absl::ZeroDuration());
  Pass(absl::Seconds(2));
  checker_.FindIll("n1");
  world_.launchers().cannot_prepare = {{"n1", kFull}};
  ASSERT_TRUE(world_.Submit(Job("a", 0)).ok());
  ASSERT_TRUE(world_.StepUntilOver("a"));
  EXPECT_EQ(world_.State("a"), JobState::kFailed);
  EXPECT_EQ(Node("n1").cordoned_by, "check");
}

TEST_F(ServiceHealthTest, ARankThatFailsOnANodeThatIsFoundIllIsBegunAgainElsewhere) {
  world_.launchers().script() = {{0, nullptr}};
  ASSERT_TRUE(world_.Submit(Job("j", 1)).ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  const std::string first = world_.service().GetJob("j")->nodes.at(0);
  checker_.FindIll(first, "gpu");
  world_.launchers().script() = {{0, {{"code", 1}}}};
  // Without the clock, which is not to count while the look takes its time.
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    world_.service().Tick();
    world_.launchers().Step(world_.service(), world_.clock().Now());
    return absl::StrContains(world_.History("j"), "Finalizing Queued");
  }));
  EXPECT_TRUE(IsCordoned(first)) << "before another job could begin there";
  std::vector<std::string> reasons;
  for (const auto& event : world_.Events("j")) reasons.push_back(event.reason);
  EXPECT_THAT(reasons, Contains(HasSubstr(absl::StrCat("; node ", first,
                                                       " is ill: gpu: it is broken; it is "
                                                       "begun again, attempt 2 of 2"))));
  world_.launchers().script() = {};
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kCompleted) << world_.Reason("j");
  EXPECT_NE(world_.service().GetJob("j")->nodes.at(0), first);
}

// Nothing looks at a node before each job.
TEST_F(ServiceHealthTest, ARankThatFailsAtOnceOnANodeThatIsFoundIllCostsNoRetry) {
  const auto fail = [&](const std::string& name, absl::Duration after) {
    world_.launchers().script() = {{0, nullptr}};
    ASSERT_TRUE(world_.Submit(Job(name, 0)).ok());
    ASSERT_TRUE(world_.StepUntilState(name, JobState::kRunning));
    checker_.FindIll(world_.service().GetJob(name)->nodes.at(0), "gpu");
    world_.clock().Advance(after);
    world_.launchers().script() = {{0, {{"code", 1}}}};
    ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
      world_.service().Tick();
      world_.launchers().Step(world_.service(), world_.clock().Now());
      return absl::StrContains(world_.History(name), "Finalizing Queued") ||
             IsEnd(world_.State(name));
    }));
  };
  fail("brief", absl::Seconds(1));
  ASSERT_FALSE(IsEnd(world_.State("brief"))) << world_.Reason("brief");
  const std::string first = IsCordoned("n1") ? "n1" : "n2";
  world_.launchers().script() = {};
  ASSERT_TRUE(world_.StepUntilOver("brief"));
  EXPECT_EQ(world_.State("brief"), JobState::kCompleted) << world_.Reason("brief");
  EXPECT_NE(world_.service().GetJob("brief")->nodes.at(0), first);
  fail("long", absl::Minutes(1));
  EXPECT_EQ(world_.State("long"), JobState::kFailed);
  EXPECT_THAT(world_.Reason("long"), HasSubstr(" is ill: gpu"));
}

// Its start and its end are heard of together.
TEST_F(ServiceHealthTest, ARankThatFailsBeforeItsJobIsRunningCostsNoRetryEither) {
  world_.launchers().script() = {{0, {{"code", 1}}}};
  for (const char* node : {"n1", "n2"}) checker_.FindIll(node, "gpu");
  ASSERT_TRUE(world_.Submit(Job("j", 0)).ok());
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    world_.service().Tick();
    for (int i = 0; i < 8; ++i) world_.launchers().Step(world_.service(), world_.clock().Now());
    return absl::StrContains(world_.History("j"), "Finalizing Queued") || IsEnd(world_.State("j"));
  }));
  EXPECT_THAT(world_.History("j"), Not(HasSubstr("Running")));
  EXPECT_FALSE(IsEnd(world_.State("j"))) << world_.Reason("j");
}

TEST_F(ServiceHealthTest, ARankThatFailsOnANodeThatIsWellIsItsOwnFault) {
  world_.launchers().script() = {{0, {{"code", 1}}}};
  ASSERT_TRUE(world_.Submit(Job("j", 1)).ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kFailed);
  EXPECT_THAT(world_.Reason("j"), Not(HasSubstr("is ill")));
}

TEST_F(ServiceHealthTest, ARanksOwnWordsAreNoFaultOfItsNode) {
  world_.launchers().script() = {{0, {{"code", 1}, {"last_error", kFull}}}};
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(world_.Submit(Job(name)).ok());
    ASSERT_TRUE(world_.StepUntilOver(name));
  }
  EXPECT_FALSE(IsCordoned("n1"));
}

TEST_F(ServiceHealthTest, ANodeOnWhichTwoWorksFailInARowIsCordonedForThem) {
  EXPECT_EQ(LoseOne("a"), "n1");
  EXPECT_FALSE(IsCordoned("n1"));
  EXPECT_EQ(LoseOne("b"), "n1");
  EXPECT_EQ(Node("n1").cordoned_by, "jobs");
  EXPECT_EQ(Node("n1").node.reason,
            "jobs a and b failed here one after the other: its launcher was lost");
  Pass(absl::Minutes(20));
  EXPECT_TRUE(IsCordoned("n1")) << "no check says that it is over";
  EXPECT_EQ(LoseOne("c"), "n2");
  EXPECT_EQ(LoseOne("d"), "n2");
  EXPECT_FALSE(IsCordoned("n2")) << "the last one that takes jobs";
  EXPECT_THAT(world_.service().Problems(),
              Contains(HasSubstr("node n2 may be ill, and is the last that takes jobs")));
}

TEST_F(ServiceHealthTest, AJobThatGoesWellBetweenThemSpeaksForTheNode) {
  LoseOne("a");
  world_.launchers().script().clear();
  ASSERT_TRUE(world_.Submit(Job("well")).ok());
  ASSERT_TRUE(world_.StepUntilOver("well"));
  EXPECT_EQ(LoseOne("b"), "n1");
  EXPECT_FALSE(IsCordoned("n1"));
}

TEST_F(ServiceHealthTest, WhatFollowsTheJobOverTwoNodesIsTheJobs) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(LoseOne(absl::StrCat("a", i), "same"), "n1");
  EXPECT_FALSE(IsCordoned("n1"));
  EXPECT_EQ(LoseOne("b", "other"), "n1");
  ASSERT_TRUE(IsCordoned("n1"));
  EXPECT_EQ(LoseOne("a3", "same"), "n2");
  EXPECT_FALSE(IsCordoned("n1")) << "it rested on the word of a job that is at fault itself";
  EXPECT_FALSE(IsCordoned("n2"));
}

// With threads: a look that does not come back.
class HungHealthTest : public ServiceHealthTest {
 protected:
  void SetUp() override { world_.service().Run(); }
  ~HungHealthTest() override { checker_.Let(); }
  template <typename Condition>
  bool Await(const Condition& condition) {
    const auto deadline = base::Deadline::After(base::Patient(absl::Seconds(20)));
    while (!condition() && !deadline.Expired()) {
      world_.clock().Advance(absl::Milliseconds(50));
      world_.service().Tick();
      world_.launchers().Step(world_.service(), world_.clock().Now());
      std::this_thread::yield();
    }
    return condition();
  }
};

TEST_F(HungHealthTest, ADiskThatHangsIsTheReasonAndHoldsNobody) {
  checker_.Hang("n1");
  ASSERT_TRUE(Await([&] { return checker_.HasLookedAt("n1"); }));
  ASSERT_TRUE(world_.Submit(Job("a")).ok());
  EXPECT_TRUE(Await([&] { return IsEnd(world_.State("a")); }));
  world_.clock().Advance(absl::Minutes(2));
  ASSERT_TRUE(Await([&] { return IsCordoned("n1"); }));
  EXPECT_THAT(Node("n1").node.reason, HasSubstr("answer: its checks have not come back for 1m"));
  EXPECT_FALSE(IsCordoned("n2"));
  checker_.Let();
  EXPECT_TRUE(Await([&] { return !IsCordoned("n1"); }));
}

TEST_F(HungHealthTest, AJobThatIsCanceledWhileItsFailureIsLookedIntoIsNotBegunAgain) {
  ASSERT_TRUE(Await([&] { return checker_.looks() >= 2; }));
  ASSERT_TRUE(world_.service().Cordon("local", "n2", "so that n1 is the only one").ok());
  world_.launchers().script() = {{0, {{"code", 1}}}};
  checker_.FindIll("n1", "gpu");
  checker_.Hang("n1");
  const size_t before = checker_.looks();
  ASSERT_TRUE(world_.Submit(Job("a")).ok());
  ASSERT_TRUE(Await([&] { return checker_.looks() > before; }));
  ASSERT_TRUE(world_.service().Cancel("a").ok());
  checker_.Let();
  EXPECT_TRUE(Await([&] { return IsEnd(world_.State("a")); }));
  EXPECT_EQ(world_.State("a"), JobState::kCanceled) << world_.Reason("a");
}

// A site's program may take its time, and a sweep may have ten thousand trials that fail.
TEST_F(HungHealthTest, JobsThatFailOneAfterTheOtherShareALook) {
  ASSERT_TRUE(Await([&] { return checker_.looks() >= 2; }));
  ASSERT_TRUE(world_.service().Cordon("local", "n2", "so that n1 is the only one").ok());
  world_.launchers().script() = {{0, {{"code", 1}}}};
  // The clock is to count little while others do their work.
  const auto await = [&](const std::function<bool()>& condition) {
    return base::AwaitPatiently(absl::Seconds(20), [&] {
      world_.clock().Advance(absl::Milliseconds(2));
      world_.service().Tick();
      world_.launchers().Step(world_.service(), world_.clock().Now());
      return condition();
    });
  };
  checker_.Hang("n1");
  const size_t before = checker_.looks();
  ASSERT_TRUE(world_.Submit(Job("a")).ok());
  ASSERT_TRUE(await([&] { return checker_.looks() > before; }));
  EXPECT_FALSE(IsEnd(world_.State("a")));
  world_.clock().Advance(absl::Seconds(20));
  checker_.Let();
  ASSERT_TRUE(await([&] { return IsEnd(world_.State("a")); }));
  const size_t looks = checker_.looks();
  ASSERT_TRUE(world_.Submit(Job("b")).ok());
  ASSERT_TRUE(await([&] { return IsEnd(world_.State("b")); }));
  EXPECT_THAT(world_.service().GetJob("b")->nodes, ElementsAre("n1"));
  EXPECT_EQ(checker_.looks(), looks);
}

// The disk of the store may be the one that is ill.
TEST_F(ServiceHealthTest, ANodeThatIsIllGetsNoJobsBeforeTheDiskHasItsCordon) {
  std::atomic<bool> hangs = false;
  world_.Open({.on_sync = [&] {
    while (hangs) std::this_thread::yield();
    return absl::OkStatus();
  }});
  ASSERT_TRUE(world_.store().Sync().ok());
  hangs = true;
  checker_.FindIll("n1");
  std::thread looks([&] { world_.service().CheckNode("local", "n1").IgnoreError(); });
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return IsCordoned("n1"); }));
  hangs = false;
  looks.join();
  EXPECT_EQ(world_.store().Cordons()->size(), 1u);
}

TEST_F(ServiceHealthTest, ACordonWaitsForTheDiskAndForNoCordonOfAnotherNode) {
  std::atomic<bool> hangs = false;
  world_.Open({.on_sync = [&] {
    while (hangs) std::this_thread::yield();
    return absl::OkStatus();
  }});
  ASSERT_TRUE(world_.store().Sync().ok());
  hangs = true;
  const auto cordon = [&](const char* node) {
    EXPECT_EQ(world_.service().Cordon("local", node, "a fan is loud"), absl::OkStatus());
  };
  std::thread first(cordon, "n1"), second(cordon, "n2");
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20),
                                   [&] { return world_.store().Cordons()->size() == 2; }));
  EXPECT_FALSE(IsCordoned("n1") || IsCordoned("n2")) << "neither is on the disk";
  hangs = false;
  first.join();
  second.join();
  EXPECT_TRUE(IsCordoned("n1") && IsCordoned("n2"));
}

TEST_F(HungHealthTest, ANodeThatIsLookedAtForAFaultGetsNoJobMeanwhile) {
  ASSERT_TRUE(Await([&] { return checker_.HasLookedAt("n1") && checker_.HasLookedAt("n2"); }));
  world_.launchers().cannot_prepare = {{"n1", kFull}};
  ASSERT_TRUE(world_.service().Cordon("local", "n2", "so that n1 is the only one").ok());
  checker_.Hang("n1");
  ASSERT_TRUE(world_.Submit(Job("a")).ok());
  ASSERT_TRUE(Await([&] { return IsEnd(world_.State("a")); }));
  world_.launchers().cannot_prepare.clear();
  ASSERT_TRUE(Await([&] { return world_.engine().Allocations().empty(); }));
  ASSERT_TRUE(world_.Submit(Job("b")).ok());
  EXPECT_EQ(world_.State("b"), JobState::kQueued);
  checker_.Let();
  EXPECT_TRUE(Await([&] { return IsEnd(world_.State("b")); }));
  EXPECT_THAT(world_.service().GetJob("b")->nodes, ElementsAre("n1"));
}

}  // namespace
}  // namespace tutti::service
