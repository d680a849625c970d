#include "runtime/scoring/report.h"

#include <gtest/gtest.h>

namespace tutti::scoring {
namespace {

const std::vector<FileScore>& Scores() {
  static const std::vector<FileScore> scores = {
      {"a.jpg", absl::OkStatus(), {{"cat", 0.75}, {"dog, small", 0.2}}},
      {"no.jpg", absl::NotFoundError("no.jpg: no such file"), {}},
      {"zoë.jpg", absl::OkStatus(), {{"frog", 1}}},
  };
  return scores;
}

TEST(Report, TableLinesUp) {
  EXPECT_EQ(FormatTable(Scores()),
            "FILE     CLASS       PROBABILITY\n"
            "a.jpg    cat              75.0 %\n"
            "         dog, small       20.0 %\n"
            "zoë.jpg  frog            100.0 %\n");
  EXPECT_EQ(FormatTable({}), "");
}

TEST(Report, JsonHasPredictionsOrTheError) {
  EXPECT_EQ(FormatJson(std::span(Scores()).first(2)), R"([
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
  EXPECT_EQ(FormatJson(std::vector<FileScore>{{"\xff", absl::OkStatus(), {}}}),
            "[\n  {\n    \"file\": \"\xEF\xBF\xBD\",\n    \"predictions\": []\n  }\n]\n");
}

TEST(Report, CsvQuotesWhatItMust) {
  EXPECT_EQ(FormatCsv(Scores()),
            "file,rank,class,probability\n"
            "a.jpg,1,cat,0.750000\n"
            "a.jpg,2,\"dog, small\",0.200000\n"
            "zoë.jpg,1,frog,1.000000\n");
}

}  // namespace
}  // namespace tutti::scoring
