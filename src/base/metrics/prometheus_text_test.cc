#include "base/metrics/prometheus_text.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace tutti::base {
namespace {

using Format = PrometheusText::Format;
using Type = PrometheusText::Type;

TEST(PrometheusText, WritesAMetricItsTypeAndWhatItSays) {
  PrometheusText text(Format::kText);
  text.Begin("tutti_jobs", Type::kGauge, "Jobs that have\nnot ended, by \\state");
  text.Add(3, {{"state", "Queued"}, {"compute", "local"}});
  text.Add(0.25);
  EXPECT_EQ(std::move(text).Finish(),
            "# HELP tutti_jobs Jobs that have\\nnot ended, by \\\\state\n"
            "# TYPE tutti_jobs gauge\n"
            "tutti_jobs{state=\"Queued\",compute=\"local\"} 3\n"
            "tutti_jobs 0.25\n");
}

TEST(PrometheusText, KeepsWhatALabelSaysAndEveryNumber) {
  PrometheusText text(Format::kText);
  text.Begin("m", Type::kGauge, "h");
  text.Add(1e15, {{"a", "say \"hi\"\\\n"}});
  text.Add(std::numeric_limits<double>::infinity());
  text.Add(std::numeric_limits<double>::quiet_NaN());
  text.Add(1.0 / 3);
  EXPECT_EQ(std::move(text).Finish(),
            "# HELP m h\n# TYPE m gauge\n"
            "m{a=\"say \\\"hi\\\"\\\\\\n\"} 1000000000000000\n"
            "m +Inf\nm NaN\nm 0.33333333333333331\n");
}

TEST(PrometheusText, AHistogramAddsUp) {
  constexpr std::array kBounds = {absl::Milliseconds(10), absl::Seconds(1)};
  base::Histogram times(kBounds);
  for (const double seconds : {0.0, 0.01, 2.0, 3.0, 7.5}) times.Add(absl::Seconds(seconds));
  PrometheusText text(Format::kText);
  text.Begin("h", Type::kHistogram, "h");
  text.Add(times, {{"route", "/"}});
  EXPECT_EQ(std::move(text).Finish(),
            "# HELP h h\n# TYPE h histogram\n"
            "h_bucket{route=\"/\",le=\"0.01\"} 2\nh_bucket{route=\"/\",le=\"1.0\"} 2\n"
            "h_bucket{route=\"/\",le=\"+Inf\"} 5\n"
            "h_sum{route=\"/\"} 12.51\nh_count{route=\"/\"} 5\n");
}

TEST(PrometheusText, OpenMetricsNamesACounterWithoutTotalAndHasAnEnd) {
  PrometheusText text(Format::kOpenMetrics);
  text.AddOne("calls_total", Type::kCounter, "say \"hi\"", 2);
  EXPECT_EQ(std::move(text).Finish(),
            "# HELP calls say \\\"hi\\\"\n# TYPE calls counter\ncalls_total 2\n# EOF\n");
}

TEST(FormatFor, TakesWhatAMonitorLikesBest) {
  EXPECT_EQ(FormatFor(""), Format::kText);
  EXPECT_EQ(FormatFor("*/*"), Format::kText);
  EXPECT_EQ(FormatFor("text/html, */*;q=0.1"), Format::kText);
  EXPECT_EQ(FormatFor("application/openmetrics-text"), Format::kOpenMetrics);
  EXPECT_EQ(FormatFor("application/openmetrics-text;version=1.0.0,application/openmetrics-text;"
                      "version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
            Format::kOpenMetrics);
  EXPECT_EQ(FormatFor("text/plain;version=0.0.4;q=0.5, Application/OpenMetrics-Text; q=0.2"),
            Format::kText);
  EXPECT_EQ(FormatFor("application/openmetrics-text;q=0"), Format::kText);
  EXPECT_EQ(FormatFor("application/openmetrics-text;q=nan"), Format::kText);
  EXPECT_EQ(FormatFor("application/openmetrics-text;q=0.9,text/plain;q=7"), Format::kText);
  EXPECT_EQ(FormatFor("application/openmetrics-text;version=0.0.1"), Format::kText);
  EXPECT_EQ(FormatFor("application/openmetrics-text; version=\"1.0.0\""), Format::kOpenMetrics);
}

}  // namespace
}  // namespace tutti::base
