#include "platform/client/jobs/stacks_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/status/status.h"

namespace tutti::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(StacksTextTest, ShowsRanksThatDoTheSameTogether) {
  const json python = {
      {"pid", 7},
      {"command", "python3 train.py\x1b[2J"},
      {"python",
       "Process 7: python3 train.py\nPython v3.11\n\nThread 7 (idle): \"Main\"\n    f (a.py:1)\n"},
      {"native", nullptr},
      {"kernel", nullptr},
      {"notes", {"gdb did not end"}}};
  const json shell = {{"pid", 3},
                      {"command", "sh"},
                      {"python", nullptr},
                      {"native", nullptr},
                      {"kernel", "Thread 3 (sh), state S, in do_wait\n"},
                      {"notes", json::array()}};
  const json answer = {
      {"job", "j"},
      {"groups",
       {{{"ranks", {0, 1, 2, 5}}, {"shown", 2}, {"note", nullptr}, {"processes", {python, shell}}},
        {{"ranks", {3}}, {"shown", 3}, {"note", "2 are left out"}, {"processes", {shell}}}}},
      {"missing", {{{"node", "n4"}, {"ranks", {6, 7}}, {"why", "it is old"}}}}};
  const auto text = TextOfStacks(answer.dump(), false);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_TRUE(text->has_any);
  EXPECT_EQ(text->lines,
            "ranks 0-2,5, as rank 2:\n"
            "  python3 train.py [2J (process 7)\n"
            "    Thread 7 (idle): \"Main\"\n"
            "        f (a.py:1)\n"
            "    ! gdb did not end\n"
            "  sh (process 3)\n"
            "    Thread 3 (sh), state S, in do_wait\n"
            "rank 3 (2 are left out):\n"
            "  sh (process 3)\n"
            "    Thread 3 (sh), state S, in do_wait\n"
            "ranks 6,7 on n4: none: it is old\n");
}

TEST(StacksTextTest, SaysWhetherThereIsAny) {
  const auto text = TextOfStacks(
      R"({"job": "j", "groups": [], "missing": [{"node": "n1", "ranks": [0], "why": "late"}]})",
      false);
  ASSERT_TRUE(text.ok());
  EXPECT_FALSE(text->has_any);
  EXPECT_THAT(text->lines, HasSubstr("rank 0 on n1: none: late"));
}

TEST(StacksTextTest, RefusesWhatIsNone) {
  for (const char* answer :
       {"", "{}", R"({"groups": [1], "missing": []})", R"({"groups": [], "missing": [{}]})"}) {
    EXPECT_FALSE(TextOfStacks(answer, false).ok()) << answer;
  }
}

TEST(StacksTextTest, WritesNumbersOfRanksShort) {
  EXPECT_EQ(RanksText(std::vector{4}), "rank 4");
  EXPECT_EQ(RanksText({0, 1}), "ranks 0,1");
  EXPECT_EQ(RanksText({0, 1, 2, 4, 6, 7, 8}), "ranks 0-2,4,6-8");
}

}  // namespace
}  // namespace tutti::client
