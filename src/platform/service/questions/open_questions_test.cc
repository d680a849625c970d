// Covers: open_questions.cc, open_question.cc.
#include "platform/service/questions/open_questions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_patience.h"

namespace tutti::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kLongWait = absl::Hours(1);

std::string Stacks(const std::string& text) {
  return spec::ToJson(spec::RankStacks{.processes = {{.pid = 1, .python = text}}});
}

std::vector<AskedNode> TwoNodes(bool listen) {
  return {{"n1", {0, 1}, listen}, {"n2", {2}, listen}};
}

class OpenQuestionsTest : public ::testing::Test {
 protected:
  std::shared_ptr<OpenQuestion> Ask(absl::Duration wait, bool listen = true,
                                    absl::Duration unheard = kLongWait) {
    return *questions.Ask("j.1", {.native = true, .wait = wait}, TwoNodes(listen), unheard);
  }
  static std::optional<QuestionAnswer> AnswerOf(OpenQuestion& question) {
    base::Deadline again = base::Deadline::After(kLongWait);
    return question.Answer(again);
  }

  std::shared_ptr<OpenQuestion> AskForResults(absl::Duration wait, const std::string& name = "") {
    return *questions.Ask("j.1", {.kind = "results", .name = name, .wait = wait}, TwoNodes(true),
                          kLongWait);
  }

  OpenQuestions questions{/*shared_for=*/kLongWait};
};

TEST_F(OpenQuestionsTest, AreAskedUntilEachRankHasAnswered) {
  const auto question = Ask(kLongWait);
  int woken = 0;
  const Subscription news = question->OnNews([&] { ++woken; });
  const auto asked = questions.ForNode("j.1", 0);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].kind, "stacks");
  EXPECT_THAT(asked[0].ranks, ElementsAre(0, 1));
  EXPECT_TRUE(asked[0].native);
  EXPECT_GT(asked[0].time, absl::ZeroDuration());
  EXPECT_TRUE(questions.ForNode("j.2", 0).empty());
  EXPECT_TRUE(questions.ForNode("j.1", 2).empty());
  EXPECT_TRUE(questions.ForNode("j.1", -1).empty());
  EXPECT_TRUE(questions.Take("j.1", 0, asked[0].id, 1, Stacks("a")).ok());
  EXPECT_THAT(questions.ForNode("j.1", 0)[0].ranks, ElementsAre(0));
  EXPECT_FALSE(AnswerOf(*question));
  EXPECT_TRUE(questions.Take("j.1", 0, asked[0].id, 0, Stacks("b")).ok());
  EXPECT_TRUE(questions.ForNode("j.1", 0).empty());
  EXPECT_TRUE(questions.Take("j.1", 1, asked[0].id, 2, Stacks("a")).ok());
  EXPECT_EQ(woken, 3);
  const auto answer = AnswerOf(*question);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->missing.empty());
  ASSERT_EQ(answer->groups.size(), 2u);
  EXPECT_THAT(answer->groups[0].ranks, ElementsAre(1, 2));
}

TEST_F(OpenQuestionsTest, TakeNoAnswerThatNobodyWaitsFor) {
  auto question = Ask(kLongWait);
  const std::string id = question->id();
  const auto take = [&](const char* allocation, int node, const std::string& of, int rank) {
    return questions.Take(allocation, node, of, rank, Stacks("a"));
  };
  EXPECT_TRUE(absl::IsNotFound(take("j.2", 0, id, 0)));
  EXPECT_TRUE(absl::IsNotFound(take("j.1", 0, "another", 0)));
  EXPECT_TRUE(absl::IsNotFound(take("j.1", 1, id, 0)));
  EXPECT_TRUE(absl::IsNotFound(take("j.1", 7, id, 0)));
  EXPECT_TRUE(take("j.1", 0, id, 0).ok());
  EXPECT_TRUE(absl::IsNotFound(take("j.1", 0, id, 0)));
  question.reset();
  EXPECT_TRUE(absl::IsNotFound(take("j.1", 0, id, 1)));
  EXPECT_TRUE(questions.ForNode("j.1", 0).empty());
}

TEST_F(OpenQuestionsTest, AreOneForAJobAndABoundedNumber) {
  auto first = Ask(kLongWait);
  const auto again = questions.Ask("j.1", {.wait = kLongWait}, TwoNodes(true), kLongWait);
  EXPECT_TRUE(absl::IsFailedPrecondition(again.status()));
  std::vector<std::shared_ptr<OpenQuestion>> open;
  absl::Status refused;
  for (int i = 2; i < 100 && refused.ok(); ++i) {
    auto other =
        questions.Ask(absl::StrCat("j.", i), {.wait = kLongWait}, TwoNodes(true), kLongWait);
    refused = other.status();
    if (other.ok()) open.push_back(*other);
  }
  EXPECT_TRUE(absl::IsUnavailable(refused));
  EXPECT_EQ(open.size(), 15u);
  EXPECT_NE(AskForResults(kLongWait), nullptr);  // another kind has its own
  first.reset();
  EXPECT_NE(Ask(kLongWait), nullptr);
}

TEST_F(OpenQuestionsTest, SayWhoDidNotAnswerAndWhy) {
  const auto question = Ask(absl::ZeroDuration());
  EXPECT_TRUE(questions.ForNode("j.1", 0).empty());  // it is too late
  const auto answer = AnswerOf(*question);
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->missing.size(), 2u);
  EXPECT_EQ(answer->missing[0].node, "n1");
  EXPECT_THAT(answer->missing[0].ranks, ElementsAre(0, 1));
  EXPECT_THAT(answer->missing[1].why, HasSubstr("nothing was heard"));
}

TEST_F(OpenQuestionsTest, DoNotWaitForLaunchersThatKnowNone) {
  const auto question = Ask(kLongWait, /*listen=*/false, absl::ZeroDuration());
  const auto asked = questions.ForNode("j.1", 1);  // this one does
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_FALSE(AnswerOf(*question));
  EXPECT_TRUE(
      questions.Take("j.1", 1, asked[0].id, 2, R"({"error": "it has ended", "processes": []})")
          .ok());
  const auto answer = AnswerOf(*question);
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->missing.size(), 2u);
  EXPECT_THAT(answer->missing[0].why, HasSubstr("earlier version"));
  EXPECT_EQ(answer->missing[1].why, "it has ended");
  EXPECT_THAT(answer->missing[1].ranks, ElementsAre(2));
}

TEST_F(OpenQuestionsTest, DoNotWaitForProcessesThatHaveEnded) {
  std::vector<AskedNode> nodes = TwoNodes(true);
  nodes[0].ended = true;
  const auto question = *questions.Ask("j.1", {.wait = kLongWait}, nodes, kLongWait);
  EXPECT_TRUE(questions.ForNode("j.1", 0).empty());
  EXPECT_FALSE(AnswerOf(*question));
  questions.EndNode("j.1", 1);  // meanwhile
  questions.EndNode("j.1", 2);  // there is none
  questions.EndNode("j.2", 0);  // nor this
  const auto answer = AnswerOf(*question);
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->missing.size(), 2u);
  EXPECT_THAT(answer->missing[0].ranks, ElementsAre(0, 1));
  EXPECT_EQ(answer->missing[1].why, "their processes have ended");
  EXPECT_TRUE(questions.Ask("j.1", {.wait = kLongWait}, nodes, kLongWait).ok());  // it is answered
}

TEST_F(OpenQuestionsTest, ForResultsAreSharedByWhoWaitsForThem) {
  const auto ask = [&](const std::string& name) {
    std::vector<AskedNode> nodes = {{"n1", {0}, true}, {"n2", {2}, true}, {"n3", {3}, true}};
    nodes[2].ended = true;  // it sends them by itself
    return *questions.Ask("j.1", {.kind = "results", .name = name, .wait = kLongWait}, nodes,
                          kLongWait);
  };
  const auto stacks = Ask(kLongWait);
  const auto first = ask("");
  EXPECT_EQ(ask(""), first);
  const auto other = ask("tfevents");
  EXPECT_NE(other, first);
  EXPECT_EQ(questions.ForNode("j.1", 0).size(), 3u);
  EXPECT_EQ(questions.ForNode("j.1", 0)[2].name, "tfevents");
  EXPECT_TRUE(questions.IsAsked("j.1", 0, first->id()));
  EXPECT_FALSE(questions.IsAsked("j.1", 2, first->id()));
  EXPECT_FALSE(questions.IsAsked("j.1", 0, "another"));
  EXPECT_TRUE(absl::IsInvalidArgument(questions.Take("j.1", 0, first->id(), 0, "[")));
  EXPECT_TRUE(questions.Take("j.1", 0, first->id(), 0, R"({"files": 2, "bytes": 7})").ok());
  EXPECT_FALSE(questions.IsAsked("j.1", 0, first->id()));
  EXPECT_FALSE(AnswerOf(*first));
  EXPECT_TRUE(questions.Take("j.1", 1, first->id(), 2, R"({"error": "it is away"})").ok());
  for (int i = 0; i < 2; ++i) {
    const auto answer = AnswerOf(*first);
    ASSERT_TRUE(answer);
    ASSERT_EQ(answer->sent.size(), 2u);
    EXPECT_EQ(answer->sent[0].results.files, 2);
    EXPECT_EQ(answer->sent[0].results.bytes, 7);
    ASSERT_EQ(answer->missing.size(), 1u);
    EXPECT_EQ(answer->missing[0].node, "n2");
    EXPECT_EQ(answer->missing[0].why, "it is away");
  }
  EXPECT_NE(ask(""), first);  // it is answered
}

TEST_F(OpenQuestionsTest, ForResultsAreSharedForAMomentByWhoWaitsAsLong) {
  const auto first = AskForResults(kLongWait);
  EXPECT_NE(AskForResults(kLongWait / 2), first);
  OpenQuestions never_shared{absl::ZeroDuration()};
  const auto ask = [&] {
    return *never_shared.Ask("j.1", {.kind = "results", .wait = kLongWait}, TwoNodes(true),
                             kLongWait);
  };
  const auto earlier = ask();
  EXPECT_NE(ask(), earlier);
}

TEST_F(OpenQuestionsTest, SayThatANodeIsAtAnEarlierOne) {
  const auto first = AskForResults(kLongWait);
  std::shared_ptr<OpenQuestion> behind;
  for (absl::Duration wait = absl::Milliseconds(50); questions.ForNode("j.1", 0).size() < 2;
       wait *= 2) {
    behind = AskForResults(wait, "tfevents");
    EXPECT_FALSE(questions.IsAsked("j.1", 2, behind->id()));
    (void)questions.IsAsked("j.1", 1, behind->id());  // tells its launcher nothing
  }
  std::optional<QuestionAnswer> answer;
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(60), [&] {
    answer = AnswerOf(*behind);
    return answer.has_value();
  }));
  ASSERT_EQ(answer->missing.size(), 2u);
  EXPECT_THAT(answer->missing[0].why, HasSubstr("who asked before"));
  EXPECT_THAT(answer->missing[0].why, HasSubstr("--wait"));
  EXPECT_THAT(answer->missing[1].why, HasSubstr("nothing was heard"));
  EXPECT_FALSE(AnswerOf(*first));
}

TEST_F(OpenQuestionsTest, TellWhatNodesHaveOnceAllHaveSaidSo) {
  std::vector<std::set<std::string>> told;
  const auto ask = [&](const std::string& allocation) {
    return *questions.Ask(
        allocation, {.kind = "results", .wait = kLongWait}, {{"n1", {0}, true}, {"n2", {2}, true}},
        kLongWait,
        [&](const std::set<std::string>& paths, absl::Duration) { told.push_back(paths); });
  };
  const auto whole = ask("j.1");
  EXPECT_TRUE(questions.Take("j.1", 0, whole->id(), 0, R"({"present": ["b", "a"]})").ok());
  EXPECT_FALSE(questions.Take("j.1", 0, whole->id(), 0, R"({"present": ["d"]})").ok());
  EXPECT_TRUE(told.empty());
  EXPECT_TRUE(questions.Take("j.1", 1, whole->id(), 2, R"({"present": ["c", "a"]})").ok());
  EXPECT_THAT(told, ElementsAre(ElementsAre("a", "b", "c")));
  const auto half = ask("j.2");
  EXPECT_TRUE(questions.Take("j.2", 0, half->id(), 0, R"({"present": ["a"]})").ok());
  EXPECT_TRUE(questions.Take("j.2", 1, half->id(), 2, R"({"files": 3})").ok());
  EXPECT_EQ(told.size(), 1u);
}

TEST_F(OpenQuestionsTest, EndWithTheirJob) {
  const auto question = Ask(kLongWait);
  const std::string id = question->id();
  EXPECT_TRUE(questions.Take("j.1", 1, id, 2, Stacks("a")).ok());
  question->End("the job has ended");
  EXPECT_TRUE(absl::IsNotFound(questions.Take("j.1", 0, id, 0, Stacks("a"))));
  const auto answer = AnswerOf(*question);
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->missing.size(), 1u);
  EXPECT_EQ(answer->missing[0].why, "the job has ended");
  EXPECT_EQ(answer->groups.size(), 1u);
}

}  // namespace
}  // namespace tutti::service
