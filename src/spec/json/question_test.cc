// Covers: question.cc, rank_stacks.cc.
#include "spec/json/question.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/json/rank_stacks.h"

namespace tutti::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

TEST(QuestionTest, GoesThereAndBack) {
  Questions asked{.pause = absl::Seconds(2)};
  asked.questions.push_back({.id = "q1",
                             .kind = kStacksQuestion,
                             .time = absl::Seconds(30),
                             .ranks = {1, 3},
                             .native = true});
  const auto read = QuestionsFromJson(ToJson(asked));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->pause, absl::Seconds(2));
  ASSERT_EQ(read->questions.size(), 1u);
  EXPECT_EQ(read->questions[0].id, "q1");
  EXPECT_EQ(read->questions[0].kind, "stacks");
  EXPECT_EQ(read->questions[0].time, absl::Seconds(30));
  EXPECT_THAT(read->questions[0].ranks, ElementsAre(1, 3));
  EXPECT_TRUE(read->questions[0].native);
}

TEST(QuestionTest, ForResultsMayNameSome) {
  Questions asked;
  asked.questions.push_back({.id = "q", .kind = kResultsQuestion, .name = "tfevents"});
  asked.questions.push_back({.id = "r", .kind = kResultsQuestion});
  const auto read = QuestionsFromJson(ToJson(asked));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->questions.at(0).name, "tfevents");
  EXPECT_EQ(read->questions.at(1).name, "");
}

TEST(SentResultsTest, GoThereAndBack) {
  const auto read =
      SentResultsFromJson(ToJson(SentResults{.files = 2, .bytes = 7, .error = "half"}));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->files, 2);
  EXPECT_EQ(read->bytes, 7);
  EXPECT_EQ(read->error, "half");
  EXPECT_FALSE(read->present);
  const auto listed = SentResultsFromJson(
      ToJson(SentResults{.present = {{PathAsSent("outputs/a b"), PathAsSent("outputs/\xff")}}}));
  ASSERT_TRUE(listed.ok());
  EXPECT_THAT(listed->present,
              Optional(ElementsAre("outputs/a%20b", "outputs/%FF")));  // and is no other name
  EXPECT_TRUE(SentResultsFromJson(R"({"present": []})")->present);
  for (const char* none : {R"({"present": 1})", R"({"present": ["a", 1]})"}) {
    EXPECT_FALSE(SentResultsFromJson(none)->present) << none;
  }
  // As a launcher of earlier answers what it does not know.
  const auto earlier = SentResultsFromJson(ToJson(RankStacks{.error = "it knows no such kind"}));
  ASSERT_TRUE(earlier.ok());
  EXPECT_EQ(earlier->files, 0);
  EXPECT_EQ(earlier->error, "it knows no such kind");
  EXPECT_EQ(SentResultsFromJson(R"({"files": -1, "bytes": "x"})")->files, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(SentResultsFromJson("[]").status()));
}

TEST(QuestionTest, PassesOverWhatIsNone) {
  const auto read = QuestionsFromJson(
      R"({"questions": [7, {}, {"id": 3}, {"id": "q", "ranks": [-1, "x", 1e9, 99999999999, 2],
          "time": "long", "native": 1, "later": {}}], "pause": -5, "more": 1})");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->pause, absl::ZeroDuration());
  ASSERT_EQ(read->questions.size(), 1u);
  EXPECT_EQ(read->questions[0].kind, "");
  EXPECT_EQ(read->questions[0].time, absl::ZeroDuration());
  EXPECT_THAT(read->questions[0].ranks, ElementsAre(2));
  EXPECT_FALSE(read->questions[0].native);
  for (const char* text : {"", "[]", "{}", R"({"questions": {}})", "{\"questions\": ["}) {
    EXPECT_TRUE(absl::IsInvalidArgument(QuestionsFromJson(text).status())) << text;
  }
}

TEST(RankStacksTest, GoThereAndBack) {
  const RankStacks stacks{.error = "half",
                          .processes = {{.pid = 7,
                                         .command = "python3 train.py",
                                         .python = "Thread 7\n",
                                         .native = "#0 main",
                                         .kernel = "futex_wait",
                                         .notes = {"no gdb"}}}};
  const auto read = RankStacksFromJson(ToJson(stacks));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->error, "half");
  ASSERT_EQ(read->processes.size(), 1u);
  const ProcessStacks& process = read->processes[0];
  EXPECT_EQ(process.pid, 7);
  EXPECT_EQ(process.command, "python3 train.py");
  EXPECT_EQ(process.python, "Thread 7\n");
  EXPECT_EQ(process.native, "#0 main");
  EXPECT_EQ(process.kernel, "futex_wait");
  EXPECT_THAT(process.notes, ElementsAre("no gdb"));
}

TEST(RankStacksTest, PassOverWhatIsNone) {
  const auto read = RankStacksFromJson(
      R"({"processes": [1, {}, {"pid": -3}, {"pid": 5, "python": 8, "notes": [1, "n"]}]})");
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->processes.size(), 1u);
  EXPECT_EQ(read->processes[0].python, "");
  EXPECT_THAT(read->processes[0].notes, ElementsAre("n"));
  for (const char* text : {"", "7", "{}", R"({"processes": 1})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(RankStacksFromJson(text).status())) << text;
  }
}

}  // namespace
}  // namespace tutti::spec
