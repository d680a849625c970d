// Covers: question_answers.cc, answerers.cc.
#include "platform/launch/questions/question_answers.h"

#include <memory>

#include "absl/synchronization/notification.h"
#include "platform/launch/node/event_log.h"
#include "platform/launch/questions/answerers.h"
#include "platform/launch/ranks/starter_fixture.h"
#include "platform/launch/stacks/stacks_fixture.h"

namespace tutti::launch {
namespace {

using ::testing::HasSubstr;

// Has questions, and keeps answers.
class AskingDelivery : public DeliveryFake {
 public:
  using DeliveryFake::DeliveryFake;
  void Ask(std::vector<spec::Question> questions) {
    absl::MutexLock lock(&mutex_);
    questions_ = std::move(questions);
  }
  std::map<int, spec::RankStacks> Answers() {
    absl::MutexLock lock(&mutex_);
    return answers_;
  }
  int times_asked() {
    absl::MutexLock lock(&mutex_);
    return times_asked_;
  }

  std::vector<spec::Question> OpenQuestions() override {
    absl::MutexLock lock(&mutex_);
    ++times_asked_;
    return questions_;
  }
  void OfferAnswer(const std::string&, int rank, std::string json) override {
    absl::MutexLock lock(&mutex_);
    answers_[rank] = *spec::RankStacksFromJson(json);
  }

 private:
  absl::Mutex mutex_;
  std::vector<spec::Question> questions_ ABSL_GUARDED_BY(mutex_);
  std::map<int, spec::RankStacks> answers_ ABSL_GUARDED_BY(mutex_);
  int times_asked_ ABSL_GUARDED_BY(mutex_) = 0;
};

class QuestionAnswersTest : public StacksFixture {
 protected:
  QuestionAnswersTest() { Begin(); }
  void Begin() {
    const StackTools stack_tools{.path = tools(), .python_limit = absl::Hours(1)};
    const Answerer other{.begin = [this](const spec::Question& question,
                                         const std::vector<RankLeader>&) -> FindAnswer {
                           return [this, rank = question.ranks.at(0)](const std::atomic<bool>&) {
                             other_goes_on.WaitForNotification();
                             return std::map<int, std::string>{
                                 {rank, R"({"error": "of another kind", "processes": []})"}};
                           };
                         },
                         .abandon =
                             [this] {
                               if (!other_goes_on.HasBeenNotified()) other_goes_on.Notify();
                             }};
    answers = std::make_unique<QuestionAnswers>(
        Answerers{{"stacks", AnswererOfStacks(stack_tools, spool.get())}, {"other", other}},
        &delivery);
  }
  static spec::Question Question(const std::string& id, const std::string& kind = "stacks") {
    return {.id = id, .kind = kind, .time = absl::Hours(1), .ranks = {0}};
  }
  // Looks, as NodeProcesses does, until something is so.
  template <class Condition>
  bool LookUntil(Condition condition) {
    return base::AwaitPatiently(absl::Seconds(30), [&] {
      answers->Look({{0, pid}});
      return condition();
    });
  }
  bool HasAnswer() { return delivery.Answers().contains(0); }
  std::string Hanging() const { return "touch " + tools() + "/hangs; trap '' TERM; sleep 1000"; }

  const pid_t pid = Start({"/usr/bin/python3", "-c", "import time; time.sleep(1e6)"});
  Wakeup news = *Wakeup::Make();
  std::unique_ptr<EventLog> events = *EventLog::Open(folder.path() / "events");
  std::unique_ptr<Spool> spool = *Spool::Open(folder.path(), 0, 1);
  AskingDelivery delivery{events.get(), spool.get(), &news};
  absl::Notification other_goes_on;
  std::unique_ptr<QuestionAnswers> answers;
};

TEST_F(QuestionAnswersTest, AnswerEachQuestionOnce) {
  Tool("py-spy", "echo x >>" + tools() + "/calls; echo frames");
  delivery.Ask({Question("a")});
  ASSERT_TRUE(LookUntil([&] { return HasAnswer(); }));
  EXPECT_EQ(delivery.Answers()[0].processes.at(0).python, "frames\n");
  const int asked = delivery.times_asked();
  ASSERT_TRUE(LookUntil([&] { return delivery.times_asked() > asked + 5; }));
  EXPECT_EQ(Content("calls"), "x\n");
  delivery.Ask({Question("a"), Question("b")});
  ASSERT_TRUE(LookUntil([&] { return Content("calls") == "x\nx\n"; }));
}

TEST_F(QuestionAnswersTest, HideSecretsInStacks) {
  spool->MaskWith(std::make_shared<const base::TextMask>(std::vector<std::string>{"secret-value"}));
  Tool("py-spy", "echo in secret-value");
  delivery.Ask({Question("a")});
  ASSERT_TRUE(LookUntil([&] { return HasAnswer(); }));
  EXPECT_EQ(delivery.Answers()[0].processes.at(0).python, "in ***\n");
}

TEST_F(QuestionAnswersTest, SayThatAQuestionIsNotKnown) {
  delivery.Ask({Question("a", "colours")});
  ASSERT_TRUE(LookUntil([&] { return HasAnswer(); }));
  EXPECT_THAT(delivery.Answers()[0].error, HasSubstr("no question of the kind colours"));
}

TEST_F(QuestionAnswersTest, AskNobodyBeforeRanksHaveRunForAWhileNorAfterTheEnd) {
  for (int i = 0; i < 10; ++i) answers->Look({});
  EXPECT_EQ(delivery.times_asked(), 0);
  answers->End();
  delivery.Ask({Question("a")});
  const base::Deadline later = base::Deadline::After(absl::Seconds(2));
  EXPECT_TRUE(LookUntil([&] { return later.Expired(); }));
  EXPECT_EQ(delivery.times_asked(), 0);
}

TEST_F(QuestionAnswersTest, OfOneKindHoldUpNoneOfAnother) {
  Tool("py-spy", "echo frames");
  spec::Question hanging = Question("a", "other");
  hanging.ranks = {1};
  delivery.Ask({hanging, Question("b")});
  ASSERT_TRUE(LookUntil([&] { return HasAnswer(); }));
  EXPECT_FALSE(delivery.Answers().contains(1));
  other_goes_on.Notify();
  ASSERT_TRUE(LookUntil([&] { return delivery.Answers().contains(1); }));
  EXPECT_EQ(delivery.Answers()[1].error, "of another kind");
}

TEST_F(QuestionAnswersTest, BreakOffWhatWaitsForSomethingElse) {
  delivery.Ask({Question("a", "other")});
  ASSERT_TRUE(LookUntil([&] { return delivery.times_asked() > 3; }));
  answers->End();
  answers.reset();
  EXPECT_TRUE(other_goes_on.HasBeenNotified());
  EXPECT_FALSE(HasAnswer());
}

TEST_F(QuestionAnswersTest, EndWithAToolThatHangs) {
  Tool("py-spy", Hanging());
  delivery.Ask({Question("a")});
  ASSERT_TRUE(LookUntil([&] { return std::filesystem::exists(folder.path() / "hangs"); }));
  answers->End();
  answers.reset();  // and not after the hour that the tool has
  EXPECT_FALSE(HasAnswer());
}

TEST_F(QuestionAnswersTest, GiveUpWhatNobodyWaitsForAndTakeUpTheNext) {
  Tool("py-spy", Hanging());
  delivery.Ask({Question("a")});
  ASSERT_TRUE(LookUntil([&] { return std::filesystem::exists(folder.path() / "hangs"); }));
  Tool("py-spy", "echo frames");
  delivery.Ask({Question("b")});
  ASSERT_TRUE(LookUntil([&] { return HasAnswer(); }));
  EXPECT_EQ(delivery.Answers()[0].processes.at(0).python, "frames\n");
}

}  // namespace
}  // namespace tutti::launch
