#include "runtime/scoring/report.h"

#include <gtest/gtest.h>

namespace tutti::scoring {
namespace {

const std::vector<FileScore>& Scores() {
  static const std::vector<FileScore> scores = {
      {"a.jpg", absl::OkStatus(), {{"cat", {0.75}}, {"dog, small", {0.2}}}, ""},
      {"no.jpg", absl::NotFoundError("no.jpg: no such file"), {}, ""},
      {"zoë.jpg", absl::OkStatus(), {{"frog", {1}}}, ""},
  };
  return scores;
}

std::unique_ptr<const Head> HeadOf(const std::string& task) {
  return *MakeHead({task, {"cat", "dog, small", "frog"}, 32, 32});
}

const Head& Classes() {
  static const Head* const head = HeadOf("classification").release();
  return *head;
}

TEST(Report, TableLinesUp) {
  EXPECT_EQ(FormatTable(Classes(), Scores()),
            "FILE     CLASS       PROBABILITY\n"
            "a.jpg    cat              75.0 %\n"
            "         dog, small       20.0 %\n"
            "zoë.jpg  frog            100.0 %\n");
  EXPECT_EQ(FormatTable(Classes(), {}), "");
}

TEST(Report, JsonHasPredictionsOrTheError) {
  EXPECT_EQ(FormatJson(Classes(), std::span(Scores()).first(2)), R"([
  {
    "file": "a.jpg",
    "predictions": [
      {
        "class": "cat",
        "probability": 0.75
      },
      {
        "class": "dog, small",
        "probability": 0.2
      }
    ]
  },
  {
    "file": "no.jpg",
    "error": "no.jpg: no such file"
  }
]
)");
  EXPECT_EQ(FormatJson(Classes(), std::vector<FileScore>{{"\xff", absl::OkStatus(), {}, ""}}),
            "[\n  {\n    \"file\": \"\xEF\xBF\xBD\",\n    \"predictions\": []\n  }\n]\n");
}

TEST(Report, CsvQuotesWhatItMust) {
  EXPECT_EQ(FormatCsv(Classes(), Scores()),
            "file,rank,class,probability\n"
            "a.jpg,1,cat,0.750000\n"
            "a.jpg,2,\"dog, small\",0.200000\n"
            "zoë.jpg,1,frog,1.000000\n");
}

TEST(Report, HasTheColumnsOfTheTask) {
  const auto head = HeadOf("detection");
  const std::vector<FileScore> scores = {
      {"a.jpg", absl::OkStatus(), {{"cat", {0.5, 1, 2.25, 30, 40}}}, ""}};
  EXPECT_EQ(FormatTable(*head, scores),
            "FILE   CLASS    SCORE     LEFT      TOP    RIGHT   BOTTOM\n"
            "a.jpg  cat     50.0 %      1.0      2.2     30.0     40.0\n");
  EXPECT_EQ(FormatCsv(*head, scores),
            "file,rank,class,score,left,top,right,bottom\n"
            "a.jpg,1,cat,0.500000,1.000000,2.250000,30.000000,40.000000\n");
}

TEST(Report, NamesTheMaskThatWasWritten) {
  const std::vector<FileScore> scores = {
      {"photos/a.jpg", absl::OkStatus(), {{"cat", {1}}}, "\x89PNG"}};
  const auto head = HeadOf("segmentation");
  const auto json = nlohmann::json::parse(FormatJson(*head, scores, "out"));
  EXPECT_EQ(json[0]["mask"], "out/photos_a.png");
  EXPECT_EQ(json[0]["classes"][0]["share"], 1);
  EXPECT_FALSE(nlohmann::json::parse(FormatJson(*head, scores))[0].contains("mask"));
}

}  // namespace
}  // namespace tutti::scoring
