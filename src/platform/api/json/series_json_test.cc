#include "platform/api/json/series_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace tutti::api {
namespace {

using nlohmann::json;

TEST(SeriesJson, GivesACourseThatIsThinnedAndTheNewestPoints) {
  service::MetricSeries series;
  series.name = "loss";
  for (int step = 0; step < 100; ++step) series.Add({100.0 - step, step, std::nullopt});
  const json answer = json::parse(SeriesJson("j", true, {series}, /*points=*/5, /*newest=*/2));
  EXPECT_EQ(answer["live"], true);
  const json& metric = answer["metrics"][0];
  EXPECT_EQ(metric["count"], 100);
  EXPECT_EQ(metric["last"], 1);
  EXPECT_EQ(metric["step"], 99);
  EXPECT_EQ(metric["min"], 1);
  EXPECT_EQ(metric["max"], 100);
  EXPECT_EQ(metric["run"], nullptr);
  EXPECT_EQ(metric["course"]["step"], json({0, 25, 50, 75, 99}));
  EXPECT_EQ(metric["course"]["time"][0], nullptr);
  EXPECT_EQ(metric["newest"]["value"], json({2, 1}));
}

TEST(SeriesJson, WhatIsNotFiniteIsNull) {
  service::MetricSeries series;
  series.Add({std::numeric_limits<double>::infinity(), 1, 2.5});
  const json metric = json::parse(SeriesJson("j", false, {series}, 60, 0))["metrics"][0];
  EXPECT_EQ(metric["last"], nullptr);
  EXPECT_EQ(metric["min"], nullptr);
  EXPECT_EQ(metric["course"]["value"], json::array({nullptr}));
  EXPECT_EQ(metric["newest"]["value"], json::array());
}

}  // namespace
}  // namespace tutti::api
