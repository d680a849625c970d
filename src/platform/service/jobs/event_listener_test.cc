// Who listens to a service's events is told of each of them once: of those that a job comes with,
// of those that it goes through, of those of its children.
#include "platform/service/jobs/event_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/service/jobs/live_job.h"
#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

using store::JobState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

class Recorder final : public EventListener {
 public:
  void OnEvent(const store::Job& job, const store::Event& event,
               const EventDetail& detail) override {
    EXPECT_EQ(ToJson(detail), event.detail) << job.id << " " << Name(event.state);
    told.push_back(absl::StrCat(job.id, " ", Name(event.state)));
    of_job[job.id].push_back(event);
  }

  std::vector<std::string> told;
  std::map<std::string, std::vector<store::Event>> of_job;
};

class EventListenerTest : public ::testing::Test {
 protected:
  // That what was told is what the store has, in its order.
  void ExpectAllOf(const std::string& id) {
    const std::vector<store::Event> kept = world_.Events(id);
    const std::vector<store::Event>& told = recorder_.of_job[id];
    ASSERT_EQ(told.size(), kept.size());
    for (size_t i = 0; i < kept.size(); ++i) {
      EXPECT_EQ(told[i].sequence, kept[i].sequence);
      EXPECT_EQ(told[i].state, kept[i].state);
      EXPECT_EQ(told[i].reason, kept[i].reason);
    }
  }

  base::TemporaryDirectory folder_;
  Recorder recorder_;
  World world_{folder_.path(), {}, 2, nullptr, {&recorder_}};
};

TEST_F(EventListenerTest, IsToldOfEachEventOfAJobOnce) {
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_THAT(recorder_.told, ElementsAre("j Queued", "j Provisioning", "j Preparing", "j Starting",
                                          "j Running", "j Finalizing", "j Completed"));
  ExpectAllOf("j");
}

TEST_F(EventListenerTest, IsToldOfAJobThatStartsAsItIsTakenIn) {
  world_.Step();  // the engine has been looked at, and the nodes are idle
  ASSERT_TRUE(world_.Submit().ok());
  EXPECT_THAT(recorder_.told, ElementsAre("j Queued", "j Provisioning"));
  ExpectAllOf("j");
}

TEST_F(EventListenerTest, IsNotToldWhatCouldNotBeWritten) {
  EXPECT_FALSE(world_.Submit("type: command\n").ok());
  EXPECT_THAT(recorder_.told, IsEmpty());
  ASSERT_TRUE(world_.Submit().ok());
  EXPECT_TRUE(absl::IsAlreadyExists(world_.Submit().status()));
  EXPECT_THAT(recorder_.told, ElementsAre("j Queued"));
}

TEST_F(EventListenerTest, IsToldNothingAgainByTheNextService) {
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  const size_t told = recorder_.told.size();
  world_.Open();
  EXPECT_EQ(recorder_.told.size(), told);
  ASSERT_TRUE(world_.StepUntilOver("j"));
  ExpectAllOf("j");
}

TEST_F(EventListenerTest, IsToldOfChildrenToo) {
  ASSERT_TRUE(world_
                  .Submit("type: pipeline\nname: p\njobs:\n  a:\n    type: command\n"
                          "    command: echo hi\n")
                  .ok());
  ASSERT_TRUE(world_.StepUntilOver("p"));
  EXPECT_THAT(recorder_.told,
              IsSupersetOf({"p Queued", "p.a Queued", "p.a Completed", "p Completed"}));
  ExpectAllOf("p");
  ExpectAllOf("p.a");
}

}  // namespace
}  // namespace tutti::service
