#include "platform/client/jobs/metrics_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tutti::client {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

const double kNone = std::nan("");

MetricSeriesView Series(const std::string& name, std::vector<double> values,
                        std::vector<double> steps) {
  MetricSeriesView series{.name = name, .last = values.back(), .step = steps.back()};
  series.min = *std::min_element(values.begin(), values.end());
  series.max = *std::max_element(values.begin(), values.end());
  series.newest = {
      .step = steps, .time = std::vector<double>(values.size(), kNone), .value = values};
  series.course = series.newest;
  return series;
}

TEST(MetricsTableTest, EachMetricHasItsLastValueAndItsRange) {
  const JobMetricsView view{.metrics = {Series("loss", {2.5, 0.125, 0.25}, {1, 2, 3})}};
  const std::string text = MetricsTable(view, {});
  EXPECT_THAT(text, AllOf(HasSubstr("loss"), HasSubstr("0.25"), HasSubstr("0.125"),
                          HasSubstr("2.5"), HasSubstr("3"), Not(HasSubstr("█"))));
  EXPECT_THAT(MetricsTable(view, {.is_terminal = true, .width = 100}), HasSubstr("█"));
  EXPECT_EQ(MetricsTable({}, {}), "");
}

TEST(MetricsTableTest, WhatIsNotKnownIsADash) {
  MetricSeriesView series{.name = "loss", .last = kNone, .step = kNone, .min = kNone, .max = kNone};
  EXPECT_THAT(MetricsTable({.metrics = {series}}, {}),
              AllOf(HasSubstr("–"), Not(HasSubstr("Step"))));
}

TEST(MetricsTableTest, WhatIsNotFiniteIsNamedAndCounted) {
  MetricSeriesView loss = Series("loss", {2, kNone, kNone}, {1, 2, 3});
  loss.last_not_finite = "-inf";
  loss.not_finite = 17;
  loss.first_not_finite = 2;
  const MetricSeriesView top1 = Series("top1", {0.5}, {3});
  const std::string text = MetricsTable({.metrics = {loss, top1}}, {});
  EXPECT_THAT(text,
              AllOf(HasSubstr("-inf"), HasSubstr("Not finite"), HasSubstr("17 (first at 2)")));
  EXPECT_THAT(MetricsTable({.metrics = {top1}}, {}), Not(HasSubstr("Not finite")));
}

TEST(NewReportsTest, PointsAreToldOnce) {
  NewReports reports;
  JobMetricsView view{.metrics = {Series("loss", {2, 1}, {1, 2}), Series("top1", {0.5}, {2})}};
  const auto first = reports.In(view);
  ASSERT_THAT(first, SizeIs(2));
  EXPECT_EQ(first[0].step, 1);
  EXPECT_THAT(first[0].values, ElementsAre(Pair("loss", 2)));
  EXPECT_THAT(first[1].values, ElementsAre(Pair("loss", 1), Pair("top1", 0.5)));
  EXPECT_THAT(reports.In(view), IsEmpty());
  view.metrics[0] = Series("loss", {1, 0.5}, {2, 3});
  const auto second = reports.In(view);
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_THAT(second[0].values, ElementsAre(Pair("loss", 0.5)));
}

TEST(ReportLineTest, HasTheClockTheStepAndTheValues) {
  const absl::TimeZone utc = absl::UTCTimeZone();
  EXPECT_EQ(ReportLine({.step = 120, .time = 3600, .values = {{"loss", 0.25}, {"top1", 1}}}, utc),
            "01:00:00  step 120  loss 0.25  top1 1");
  const double infinity = std::numeric_limits<double>::infinity();
  const ReportedStep diverged{
      .step = kNone, .time = kNone, .values = {{"loss", kNone}, {"a", infinity}, {"b", -infinity}}};
  EXPECT_EQ(ReportLine(diverged, utc), "loss nan  a inf  b -inf");
}

}  // namespace
}  // namespace tutti::client
