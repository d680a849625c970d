#include "platform/service/logs/reported_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace tutti::service {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using testing::Pair;

class ReportedLineTest : public testing::Test {
 protected:
  // Returns the values of a line by their names; nothing where it is no report.
  std::optional<std::vector<std::pair<std::string, double>>> Values(absl::string_view text) {
    std::vector<std::pair<std::string, double>> values;
    if (!line_.Read(text)) return std::nullopt;
    for (const ReportedLine::Value& value : line_.values()) {
      values.emplace_back(absl::StrCat(value.prefix, value.name), value.value);
    }
    return values;
  }

  ReportedLine line_;
};

TEST_F(ReportedLineTest, ReadsWhatAnEventReports) {
  EXPECT_THAT(Values(R"({"event": "step", "epoch": 1, "step": 7, "loss":2.5e-1 ,"time": 1.5})"),
              Optional(ElementsAre(Pair("loss", 0.25))));
  EXPECT_THAT(line_.step(), Optional(7));
  EXPECT_THAT(line_.time(), Optional(1.5));
  EXPECT_THAT(Values(R"({"loss": 3, "event": "evaluation", "images": 9, "top1": -0.5})"),
              Optional(ElementsAre(Pair("evaluation/loss", 3), Pair("evaluation/top1", -0.5))));
  EXPECT_EQ(line_.step(), std::nullopt);
  EXPECT_THAT(
      Values(R"({"event": "metric", "name": "f1", "value": 1, "run": "a", "nested": true})"),
      Optional(ElementsAre(Pair("f1", 1))));
  EXPECT_EQ(line_.run(), "a");
  EXPECT_TRUE(line_.nested());
  EXPECT_THAT(Values(R"({"event": "ranks", "slowest": 3})"), Optional(IsEmpty()));
  EXPECT_THAT(Values(R"({"event": "metric", "name": "f1"})"), Optional(IsEmpty()));
  EXPECT_THAT(Values(R"({"event": "metric", "name": "f1", "value": "x"})"), Optional(IsEmpty()));
  EXPECT_FALSE(line_.nested());
}

TEST_F(ReportedLineTest, WhatIsNotFiniteIsAValueToo) {
  const auto values = Values(R"({"a": NaN, "b": Infinity, "c": -Infinity, "d": null, "e": 1})");
  ASSERT_TRUE(values);
  ASSERT_EQ(values->size(), 5u);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan((*values)[0].second));
  EXPECT_EQ((*values)[1].second, kInfinity);
  EXPECT_EQ((*values)[2].second, -kInfinity);
  EXPECT_TRUE(std::isnan((*values)[3].second));
  EXPECT_EQ((*values)[4].second, 1);
  EXPECT_THAT(Values(R"({"a": 1e999, "b": -1e999, "c": 1e-999})"),
              Optional(ElementsAre(Pair("a", kInfinity), Pair("b", -kInfinity), Pair("c", 0))));
  Values(R"({"a": 1, "step": NaN, "time": Infinity})");
  EXPECT_EQ(line_.step(), std::nullopt);
  EXPECT_EQ(line_.time(), std::nullopt);
}

TEST_F(ReportedLineTest, PassesOverWhatIsNoNumber) {
  EXPECT_THAT(Values(R"({"a": {"b": [1, "]}\"", {}]}, "c": true, "d": false, "e": "1", "f": 2})"),
              Optional(ElementsAre(Pair("f", 2))));
  EXPECT_THAT(Values(" {} "), Optional(IsEmpty()));
}

TEST_F(ReportedLineTest, NamesAreText) {
  EXPECT_THAT(Values(R"({"pr\u00e9cision \"x\"": 1, "µ": 2})"),
              Optional(ElementsAre(Pair("précision \"x\"", 1), Pair("µ", 2))));
}

TEST_F(ReportedLineTest, OtherLinesHaveNone) {
  for (const char* const text : {"",
                                 "no JSON",
                                 "[1]",
                                 "{\"a\": 1",
                                 "{\"a\": 1} x",
                                 "{\"a\" 1}",
                                 "{\"a\": }",
                                 "{\"a\": 1,}",
                                 "{a: 1}",
                                 "{\"a\": nan}",
                                 "{\"a\": inf}",
                                 "{\"a\": .5}",
                                 "{\"a\": +1}",
                                 "{\"a\": -}",
                                 "{\"a\": Inf",
                                 "{\"a\": [1}",
                                 "{\"a",
                                 "{\"a\\",
                                 "{\"\\x\": 1}",
                                 "{\"\xff\": 1}",
                                 "{\"a\nb\": 1}",
                                 "{\"a\": tru}"}) {
    EXPECT_EQ(Values(text), std::nullopt) << text;
    EXPECT_THAT(line_.values(), IsEmpty()) << text;
  }
}

}  // namespace
}  // namespace tutti::service
