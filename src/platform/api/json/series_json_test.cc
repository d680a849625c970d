#include "platform/api/json/series_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace tutti::api {
namespace {

using nlohmann::json;

json MetricOf(const service::MetricSeries& series, const service::MetricQuery& query) {
  return json::parse(SeriesJson("j", true, {series.Report(query)}))["metrics"][0];
}

TEST(SeriesJson, GivesACourseOfSpansAndTheNewestPoints) {
  service::MetricSeries series("loss", 0, "");
  for (int step = 0; step < 100; ++step) series.Add({100.0 - step, step, std::nullopt});
  const json metric = MetricOf(series, {.points = 5, .newest = 2});
  EXPECT_EQ(metric["count"], 100);
  EXPECT_EQ(metric["not_finite"], 0);
  EXPECT_EQ(metric["last"], 1);
  EXPECT_EQ(metric["first_not_finite"], nullptr);
  EXPECT_EQ(metric["last_not_finite"], nullptr);
  EXPECT_EQ(metric["step"], 99);
  EXPECT_EQ(metric["min"], 1);
  EXPECT_EQ(metric["max"], 100);
  EXPECT_EQ(metric["run"], nullptr);
  EXPECT_EQ(metric["span"], 32);
  EXPECT_EQ(metric["first"], 0);
  EXPECT_EQ(metric["course"]["step"], json({31, 63, 95, 99}));
  EXPECT_EQ(metric["course"]["value"], json({69, 37, 5, 1}));
  EXPECT_EQ(metric["course"]["low"], json({69, 37, 5, 1}));
  EXPECT_EQ(metric["course"]["high"], json({100, 68, 36, 4}));
  EXPECT_EQ(metric["course"]["time"][0], nullptr);
  EXPECT_EQ(metric["newest"]["value"], json({2, 1}));
  const json part =
      MetricOf(series, {.points = 5, .range = service::MetricRange{.from = 50, .to = 52}});
  EXPECT_EQ(part["span"], 1);
  EXPECT_EQ(part["first"], 49);
  EXPECT_EQ(part["course"]["step"], json({49, 50, 51, 52, 53}));
}

TEST(SeriesJson, WhatIsNotFiniteIsNullAndNamed) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  service::MetricSeries series("loss", 0, "");
  series.Add({kInfinity, 1, 2.5});
  json metric = MetricOf(series, {.points = 60});
  EXPECT_EQ(metric["last"], nullptr);
  EXPECT_EQ(metric["last_not_finite"], "inf");
  EXPECT_EQ(metric["min"], nullptr);
  for (const char* const column : {"value", "low", "high"}) {
    EXPECT_EQ(metric["course"][column], json::array({nullptr})) << column;
  }
  EXPECT_EQ(metric["course"]["not_finite"], json({1}));
  EXPECT_EQ(metric["newest"]["value"], json::array());
  series.Add({-kInfinity, 2, 3.5});
  EXPECT_EQ(MetricOf(series, {})["last_not_finite"], "-inf");
  series.Add({std::numeric_limits<double>::quiet_NaN(), 3, 4.5});
  metric = MetricOf(series, {.points = 1, .newest = 1});
  EXPECT_EQ(metric["last_not_finite"], "nan");
  series.Add({0.5, 4, 5.5});
  metric = MetricOf(series, {.points = 1, .newest = 4});
  EXPECT_EQ(metric["last_not_finite"], nullptr);
  EXPECT_EQ(metric["not_finite"], 3);
  EXPECT_EQ(metric["first_not_finite"], 1);
  EXPECT_EQ(metric["newest"]["value"], json({nullptr, nullptr, nullptr, 0.5}));
  EXPECT_EQ(metric["newest"]["not_finite"], json({"inf", "-inf", "nan", nullptr}));
}

}  // namespace
}  // namespace tutti::api
