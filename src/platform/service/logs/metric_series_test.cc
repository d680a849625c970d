#include "platform/service/logs/metric_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::service {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::Optional;
using testing::SizeIs;

class MetricSeriesTest : public testing::Test {
 protected:
  MetricSeriesTest() { std::filesystem::create_directories(folder_.path() / "logs"); }
  void Write(const std::string& file, const std::string& text) const {
    std::ofstream(folder_.path() / "logs" / file, std::ios::app) << text;
  }
  // Reports `points` points of "loss", which are 1 but for one, that is 50; two for a step, each a
  // tenth of a second.
  void WriteSpike(int points, int spike) const {
    std::string lines;
    for (int i = 0; i < points; ++i) {
      absl::StrAppend(&lines, "{\"loss\": ", i == spike ? 50 : 1, ", \"step\": ", i / 2,
                      ", \"time\": ", 1000 + 0.1 * i, "}\n");
    }
    Write("rank-0.metrics", lines);
  }
  static std::vector<std::string> Names(const std::vector<ReportedMetric>& metrics) {
    std::vector<std::string> names;
    for (const ReportedMetric& one : metrics) names.push_back(one.name);
    return names;
  }
  // Returns the steps of the course's entries.
  static std::vector<int64_t> Steps(const ReportedMetric& metric) {
    std::vector<int64_t> steps;
    for (const MetricSpan& span : metric.course) steps.push_back(span.last.step.value_or(-1));
    return steps;
  }

  std::vector<ReportedMetric> Read(const MetricQuery& query = {}) {
    auto metrics = metrics_.Read(query);
    EXPECT_TRUE(metrics.ok()) << metrics.status();
    return *std::move(metrics);
  }

  const base::TemporaryDirectory folder_;
  LoggedMetrics metrics_{folder_.path(), MetricsOfJobs::kMostBytes};
};

TEST_F(MetricSeriesTest, NumbersOfLinesAreMetrics) {
  Write("rank-0.metrics",
        "{\"event\": \"start\", \"parameters\": 7}\n"
        "{\"event\": \"step\", \"epoch\": 1, \"step\": 1, \"loss\": 2, \"time\": 1.5}\n"
        "{\"event\": \"step\", \"epoch\": 1, \"step\": 2, \"loss\": 0.5, \"time\": 2.5}\n"
        "{\"event\": \"evaluation\", \"step\": 2, \"loss\": 3, \"images\": 9, \"top1\": 0.25}\n"
        "{\"event\": \"metric\", \"name\": \"accuracy\", \"value\": 0.75}\n"
        "{\"perplexity\": 8, \"step\": 4}\n"
        "no JSON\n{\"half\": 1");
  const std::vector<ReportedMetric> metrics = Read({.newest = 1});
  EXPECT_THAT(Names(metrics),
              ElementsAre("loss", "evaluation/loss", "evaluation/top1", "accuracy", "perplexity"));
  EXPECT_EQ(metrics[0].count, 2);
  EXPECT_EQ(metrics[0].values.least, 0.5);
  EXPECT_EQ(metrics[0].values.greatest, 2);
  EXPECT_EQ(metrics[0].last.value, 0.5);
  EXPECT_THAT(metrics[0].last.step, Optional(2));
  EXPECT_THAT(metrics[0].last.time, Optional(2.5));
  EXPECT_THAT(metrics[0].newest, ElementsAre(Field(&MetricPoint::value, 0.5)));
  EXPECT_EQ(metrics[3].last.step, std::nullopt);
  Write("rank-0.metrics", ", \"step\": 5}\n");
  EXPECT_EQ(Names(Read()).back(), "half");
  EXPECT_THAT(Names(Read({.metric = "accuracy"})), ElementsAre("accuracy"));
}

TEST_F(MetricSeriesTest, ASpikeIsSeenHoweverFewSpansThereAre) {
  constexpr int kPoints = 200'000, kSpike = 123'456;
  WriteSpike(kPoints, kSpike);
  for (const size_t points : {1u, 2u, 60u, 512u}) {
    const ReportedMetric metric = Read({.points = points}).at(0);
    ASSERT_LE(metric.course.size(), points);
    ASSERT_GT(2 * metric.course.size(), points);
    EXPECT_EQ(metric.count, kPoints);
    EXPECT_EQ(metric.first, 0);
    const auto spike = static_cast<size_t>(kSpike / metric.span);
    EXPECT_EQ(metric.course[spike].values.greatest, 50);
    EXPECT_EQ(metric.course[spike].values.least, metric.span == 1 ? 50 : 1);
    EXPECT_EQ(metric.course.back().last.step, kPoints / 2 - 1);
  }
}

TEST_F(MetricSeriesTest, ARangeIsReadDownToEachPoint) {
  constexpr int kPoints = 200'000, kSpike = 123'456;
  WriteSpike(kPoints, kSpike);
  // From coarse to fine, as one zooms.
  for (const int half : {40'000, 5'000, 700, 3}) {
    const MetricRange range{.from = (kSpike - half) / 2.0, .to = (kSpike + half) / 2.0};
    const ReportedMetric metric = Read({.points = 100, .range = range}).at(0);
    ASSERT_LE(metric.course.size(), 102u);
    EXPECT_EQ(metric.count, kPoints);
    const auto spike = static_cast<size_t>((kSpike - metric.first) / metric.span);
    ASSERT_LT(spike, metric.course.size());
    EXPECT_EQ(metric.course[spike].values.greatest, 50) << half;
    EXPECT_LE(metric.course.front().steps.least, range.from);
    EXPECT_GE(metric.course.back().steps.greatest, range.to);
    EXPECT_LE(metric.span * 100, std::max(100, 8 * half)) << "as fine as its points allow";
  }
  const ReportedMetric steps =
      Read({.points = 10, .range = MetricRange{.from = 700, .to = 702}})[0];
  EXPECT_THAT(Steps(steps), ElementsAre(699, 700, 700, 701, 701, 702, 702, 703));
  EXPECT_EQ(steps.first, 1399);
  EXPECT_EQ(steps.span, 1);
  const MetricRange seconds{.by_time = true, .from = 20'999.75, .to = 30'000};
  const ReportedMetric last = Read({.points = 10, .range = seconds})[0];
  EXPECT_THAT(Steps(last), ElementsAre(99'998, 99'999, 99'999));
  EXPECT_EQ(last.first, kPoints - 3);
  EXPECT_THAT(Read({.points = 10, .range = MetricRange{.from = 100'000}})[0].course, IsEmpty());
}

TEST_F(MetricSeriesTest, ARangeOfSeveralMetricsIsReadInOnePass) {
  std::string lines;
  for (int i = 0; i < 20'000; ++i) {
    absl::StrAppend(&lines, "{\"a\": ", i, ", \"step\": ", i, "}\n");
    if (i % 2 == 0) absl::StrAppend(&lines, "{\"b\": ", -i, "}\n");
  }
  Write("rank-0.metrics", lines);
  const auto metrics = Read({.points = 50, .range = MetricRange{.from = 5000, .to = 5002}});
  EXPECT_THAT(Steps(metrics.at(0)), ElementsAre(4999, 5000, 5001, 5002, 5003));
  ASSERT_THAT(metrics.at(1).course, SizeIs(5)) << "by their numbers, where no step is told";
  EXPECT_EQ(metrics[1].first, 4999);
  EXPECT_EQ(metrics[1].course[0].last.value, -2 * 4999);
}

TEST_F(MetricSeriesTest, WhatIsNotFiniteIsKeptInItsPlaceAndCounted) {
  Write("rank-0.metrics",
        "{\"loss\": 1}\n{\"loss\": NaN}\n{\"loss\": null}\n{\"loss\": 2}\n{\"loss\": -Infinity}\n");
  const ReportedMetric metric = Read({.points = 10, .newest = 9}).at(0);
  EXPECT_EQ(metric.count, 5);
  EXPECT_EQ(metric.not_finite, 3);
  EXPECT_EQ(metric.values.least, 1);
  EXPECT_EQ(metric.values.greatest, 2);
  EXPECT_EQ(metric.last.value, -std::numeric_limits<double>::infinity());
  ASSERT_THAT(metric.course, SizeIs(5));
  EXPECT_EQ(metric.course[1].not_finite, 1);
  EXPECT_TRUE(std::isnan(metric.course[1].values.least));
  EXPECT_EQ(metric.newest[3].value, 2);
  const ReportedMetric coarse = Read({.points = 1}).at(0);
  EXPECT_EQ(coarse.course.at(0).not_finite, 3);
  EXPECT_EQ(coarse.course[0].values.greatest, 2);
}

TEST_F(MetricSeriesTest, AJobThatWasBegunAgainReportsStepsAgain) {
  std::string lines;
  const auto report = [&](int from, int to, int value) {
    for (int step = from; step < to; ++step) {
      absl::StrAppend(&lines, "{\"loss\": ", value, ", \"step\": ", step, "}\n");
    }
  };
  report(0, 60'000, 1);
  report(50'000, 100'000, 2);
  Write("rank-0.metrics", lines);
  const ReportedMetric metric =
      Read({.points = 20, .range = MetricRange{.from = 55'000, .to = 55'001}}).at(0);
  EXPECT_THAT(Steps(metric),
              ElementsAre(54'999, 55'000, 55'001, 55'002, 54'999, 55'000, 55'001, 55'002));
  EXPECT_EQ(metric.course[3].last.value, 1);
  EXPECT_EQ(metric.course[4].last.value, 2);
}

TEST_F(MetricSeriesTest, TheLowestRankIsShownAndItsOwnRuns) {
  Write("rank-1.metrics", "{\"loss\": 1}\n");
  Write("rank-3.metrics", "{\"loss\": 3}\n{\"other\": 1}\n");
  Write("rank-1.mlflow",
        "{\"event\": \"metric\", \"name\": \"loss\", \"value\": 9, \"run\": \"a\"}\n"
        "{\"event\": \"metric\", \"name\": \"f1\", \"value\": null, \"run\": \"a\"}\n"
        "{\"event\": \"metric\", \"name\": \"fold\", \"value\": 2, \"run\": \"b\", "
        "\"nested\": true}\n");
  const std::vector<ReportedMetric> shown = Read();
  EXPECT_THAT(Names(shown), ElementsAre("loss", "f1"));
  EXPECT_EQ(shown[0].last.value, 1);
  EXPECT_TRUE(std::isnan(shown[1].last.value));
  EXPECT_TRUE(std::isnan(shown[1].values.least));
  EXPECT_THAT(Names(Read({.rank = 3})), ElementsAre("loss", "other"));
  EXPECT_THAT(Read({.rank = 7}), IsEmpty());
}

TEST_F(MetricSeriesTest, LongNamesAreCutAndManyMetricsAreLeftOut) {
  const std::string name(300, 'x');
  std::string lines;
  for (size_t i = 0; i < LoggedMetrics::kMostSeries + 10; ++i) {
    absl::StrAppend(&lines, "{\"", name, i % 2, "\": 1, \"m", i, "\": 2}\n");
  }
  Write("rank-0.metrics", lines);
  const std::vector<ReportedMetric> metrics = Read();
  ASSERT_THAT(metrics, SizeIs(LoggedMetrics::kMostSeries));
  EXPECT_EQ(metrics[0].name, name.substr(0, 249) + "…");
  EXPECT_EQ(metrics[0].count, static_cast<int64_t>(LoggedMetrics::kMostSeries + 10));
}

TEST_F(MetricSeriesTest, ARankWithoutMetricsGivesWayToTheNext) {
  Write("rank-0.metrics", "{\"event\": \"start\"}\n");
  Write("rank-2.metrics", "{\"loss\": 2}\n");
  EXPECT_THAT(Read(), ElementsAre(Field(&ReportedMetric::rank, 2)));
}

TEST_F(MetricSeriesTest, OfSeveralRunsTheValueThatWasLoggedLastCounts) {
  const auto line = [](const char* run, int value, int time) {
    return absl::StrCat("{\"event\": \"metric\", \"name\": \"loss\", \"value\": ", value,
                        ", \"step\": 1, \"time\": ", time, ", \"run\": \"", run, "\"}\n");
  };
  Write("rank-0.mlflow", line("a", 1, 20) + line("b", 2, 10));
  EXPECT_THAT(LastValues(Read()), ElementsAre(Field(&mlflow::Metric::value, 1)));
}

TEST_F(MetricSeriesTest, AnEarlierJobOfThatNameIsAnother) {
  MetricsOfJobs jobs;
  EXPECT_THAT(*jobs.Read(folder_.path(), 1, {}), IsEmpty());
  Write("rank-0.metrics", "{\"loss\": 1}\n");
  EXPECT_THAT(*jobs.Read(folder_.path(), 1, {}), SizeIs(1));
  std::filesystem::remove(folder_.path() / "logs" / "rank-0.metrics");
  Write("rank-0.metrics", "{\"top1\": 1}\n");
  EXPECT_THAT(Names(*jobs.Read(folder_.path(), 2, {})), ElementsAre("top1"));
}

TEST_F(MetricSeriesTest, AJobWithoutAFolderHasNone) {
  MetricsOfJobs jobs;
  EXPECT_THAT(*jobs.Read(folder_.path() / "none", 1, {}), IsEmpty());
}

// Returns the memory that is kept of so many metrics of so many points.
uint64_t BytesOf(const std::filesystem::path& folder, int metrics, int points) {
  std::filesystem::create_directories(folder / "logs");
  std::string lines;
  for (int point = 0; point < points; ++point) {
    absl::StrAppend(&lines, "{\"step\": ", point);
    for (int i = 0; i < metrics; ++i) absl::StrAppend(&lines, ", \"m", i, "\": ", point);
    absl::StrAppend(&lines, "}\n");
  }
  std::ofstream(folder / "logs" / "rank-0.metrics") << lines;
  LoggedMetrics logged(folder, MetricsOfJobs::kMostBytes);
  EXPECT_TRUE(logged.Read({}).ok());
  return logged.bytes();
}

TEST_F(MetricSeriesTest, MemoryIsOneHoweverManyPointsAndMetricsThereAre) {
  const uint64_t one = BytesOf(folder_.path() / "one", 1, 5'000);
  EXPECT_LE(BytesOf(folder_.path() / "long", 1, 100'000), one);
  EXPECT_LE(BytesOf(folder_.path() / "many", 256, 5'000), MetricsOfJobs::kMostBytes / 2);
}

TEST_F(MetricSeriesTest, JobsAndRanksThatWereAskedForLongAgoAreForgotten) {
  const uint64_t each = BytesOf(folder_.path() / "0", 8, 1'000);
  MetricsOfJobs jobs(/*most_bytes=*/4 * each);
  for (int job = 0; job < 12; ++job) {
    const auto folder = folder_.path() / absl::StrCat(job);
    BytesOf(folder, 8, 1'000);
    EXPECT_THAT(*jobs.Read(folder, 1, {}), SizeIs(8));
    EXPECT_EQ(jobs.bytes(), std::min(4, job + 1) * each);
  }
  for (int rank = 1; rank < 12; ++rank) {
    const auto logs = folder_.path() / "0" / "logs";
    std::filesystem::copy(logs / "rank-0.metrics", logs / absl::StrCat("rank-", rank, ".metrics"));
    EXPECT_THAT(*jobs.Read(folder_.path() / "0", 1, {.rank = rank}), SizeIs(8));
    EXPECT_LE(jobs.bytes(), 4 * each);
  }
}

}  // namespace
}  // namespace tutti::service
