#include "platform/service/logs/metric_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

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
  static std::vector<std::string> Names(const std::vector<MetricSeries>& series) {
    std::vector<std::string> names;
    for (const MetricSeries& one : series) names.push_back(one.name);
    return names;
  }

  std::vector<MetricSeries> Read(std::optional<int> rank = std::nullopt) {
    auto series = metrics_.ReadOn(rank);
    EXPECT_TRUE(series.ok()) << series.status();
    return *std::move(series);
  }

  const base::TemporaryDirectory folder_;
  LoggedMetrics metrics_{folder_.path()};
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
  const std::vector<MetricSeries> series = Read();
  EXPECT_THAT(Names(series),
              ElementsAre("loss", "evaluation/loss", "evaluation/top1", "accuracy", "perplexity"));
  EXPECT_EQ(series[0].count, 2);
  EXPECT_THAT(series[0].min, Optional(0.5));
  EXPECT_THAT(series[0].max, Optional(2.0));
  EXPECT_EQ(series[0].newest.back().value, 0.5);
  EXPECT_THAT(series[0].newest.back().step, Optional(2));
  EXPECT_THAT(series[0].newest.back().time, Optional(2.5));
  EXPECT_EQ(series[3].newest.back().step, std::nullopt);
  Write("rank-0.metrics", ", \"step\": 5}\n");
  EXPECT_EQ(Names(Read()).back(), "half");
}

TEST_F(MetricSeriesTest, ALongCourseIsThinnedEvenly) {
  std::string lines;
  for (int step = 0; step < 5000; ++step) absl::StrAppend(&lines, "{\"x\": ", step, "}\n");
  Write("rank-0.metrics", lines);
  const MetricSeries series = Read().at(0);
  EXPECT_EQ(series.count, 5000);
  ASSERT_LE(series.course.size(), MetricSeries::kMostCourse);
  ASSERT_GT(series.course.size(), MetricSeries::kMostCourse / 2 - 1);
  const double stride = series.course[1].value;
  for (size_t i = 0; i < series.course.size(); ++i) {
    EXPECT_EQ(series.course[i].value, stride * static_cast<double>(i));
  }
  EXPECT_THAT(series.newest, SizeIs(MetricSeries::kMostNewest));
  EXPECT_EQ(series.newest.front().value, 5000 - 256);
}

TEST_F(MetricSeriesTest, TheLowestRankIsShownAndItsOwnRuns) {
  Write("rank-1.metrics", "{\"loss\": 1}\n");
  Write("rank-3.metrics", "{\"loss\": 3}\n{\"other\": 1}\n");
  Write("rank-1.mlflow",
        "{\"event\": \"metric\", \"name\": \"loss\", \"value\": 9, \"run\": \"a\"}\n"
        "{\"event\": \"metric\", \"name\": \"f1\", \"value\": null, \"run\": \"a\"}\n"
        "{\"event\": \"metric\", \"name\": \"fold\", \"value\": 2, \"run\": \"b\", "
        "\"nested\": true}\n");
  const auto shown = SeriesToShow(Read());
  EXPECT_THAT(Names(shown), ElementsAre("loss", "f1"));
  EXPECT_EQ(shown[0].newest.back().value, 1);
  EXPECT_TRUE(std::isnan(shown[1].newest.back().value));
  EXPECT_EQ(shown[1].min, std::nullopt);
  EXPECT_THAT(Names(Read(3)), ElementsAre("loss", "other"));
  EXPECT_THAT(Read(7), IsEmpty());
}

TEST_F(MetricSeriesTest, ARankWithoutMetricsGivesWayToTheNext) {
  Write("rank-0.metrics", "{\"event\": \"start\"}\n");
  Write("rank-2.metrics", "{\"loss\": 2}\n");
  EXPECT_THAT(Read(), ElementsAre(Field(&MetricSeries::rank, 2)));
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

}  // namespace
}  // namespace tutti::service
