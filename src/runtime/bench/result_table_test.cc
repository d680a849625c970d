// Covers: chart.cc, point.h.
#include "runtime/bench/result_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/bench/chart.h"

namespace tutti::bench {
namespace {

using testing::HasSubstr;

// 10 images a rank: alone in 0.1 s, two in 0.125 s, of which 0.02 are explained.
std::vector<Point> TwoPoints() {
  Point one, two;
  one.model = two.model = "resnet20";
  one.transport = two.transport = "tcp";
  one.batch = two.batch = 10;
  one.alone = two.alone = 100;
  one.parts = {.forward = 0.04, .backward = 0.06};
  one.predicted = {.compute = 0.1};
  two.ranks = 2;
  two.parts = {.forward = 0.04, .backward = 0.06, .communication = 0.025};
  two.link = {1e-5, 1e-9};
  two.predicted = {.compute = 0.1, .communication = 0.05, .exposed = 0.02};
  return {one, two};
}

TEST(Point, IsHeldAgainstTheIdealAndTheModel) {
  const Point two = TwoPoints()[1];
  EXPECT_DOUBLE_EQ(two.images_per_second(), 160);
  EXPECT_DOUBLE_EQ(two.ideal(), 200);
  EXPECT_DOUBLE_EQ(two.efficiency(), 0.8);
  EXPECT_NEAR(two.predicted_images_per_second(), 20 / 0.12, 1e-9);
}

TEST(MarkdownTable, HasALineForEachPoint) {
  const std::string text = MarkdownTable({.date = "2026-11-20"}, TwoPoints());
  EXPECT_THAT(text, HasSubstr("| resnet20 | tcp | 1 | 100.0 | 100.0 | 100 % | 100.0 | 1.00 |"));
  EXPECT_THAT(text, HasSubstr("| resnet20 | tcp | 2 | 160.0 | 200.0 | 80 % | 166.7 | 0.96 | 125.0 "
                              "| 100.0 | 20.00 | 30.00 |"));
}

// As of several ranks on GPUs.
TEST(Point, WithoutAModelOfItsStepLeavesItsColumnsEmpty) {
  Point point = TwoPoints()[1];
  point.predicted = {};
  const std::string row = "| resnet20 | tcp | 2 | 160.0 | 200.0 | 80 % | | | 125.0 | | | |\n";
  EXPECT_THAT(MarkdownTable({}, std::vector<Point>{point}), HasSubstr(row));
  const auto json = nlohmann::json::parse(JsonDocument({}, std::vector<Point>{point}));
  EXPECT_TRUE(json["points"][0]["predicted"].is_null());
}

TEST(JsonDocument, HasWhatWasMeasuredAndWhatExplainsIt) {
  const auto json = nlohmann::json::parse(JsonDocument({.cores = 2}, TwoPoints()));
  ASSERT_EQ(json["points"].size(), 2u);
  EXPECT_EQ(json["cores"], 2);
  const auto& two = json["points"][1];
  EXPECT_EQ(two["ranks"], 2);
  EXPECT_EQ(two["step"]["communication"], 0.025);
  EXPECT_EQ(two["predicted"]["exposed"], 0.02);
  EXPECT_EQ(two["link"]["beta"], 1e-9);
}

TEST(SvgChart, HasAPanelAModelALineATransportAndTheIdeal) {
  std::vector<Point> points = TwoPoints();
  for (Point point : TwoPoints()) {
    point.model = "resnet50";
    points.push_back(point);
  }
  const std::string svg = SvgChart({}, points);
  EXPECT_THAT(svg, testing::StartsWith("<svg"));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  for (const char* words : {">resnet20<", ">resnet50<", ">tcp<", ">ideal<", ">80 %<"}) {
    EXPECT_THAT(svg, HasSubstr(words));
  }
}

}  // namespace
}  // namespace tutti::bench
