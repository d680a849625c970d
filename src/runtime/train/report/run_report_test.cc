// Covers: utilisation.cc, meter.cc, metrics_file.cc, progress.cc.
#include "runtime/train/report/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include <filesystem>
#include <thread>

#include "base/file.h"
#include "runtime/train/report/meter.h"
#include "runtime/train/report/metrics_file.h"
#include "runtime/train/report/progress.h"
#include "runtime/train/report/utilisation.h"

namespace tutti::train {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Meter, AveragesOverTheStepsSinceTheLastTake) {
  Meter meter;
  meter.Add({.data = 1, .forward = 2, .backward = 3}, 4.0, 10);
  meter.Add({.data = 3, .optimizer = 1}, 1.0, 30);
  const Interval interval = meter.Take();
  EXPECT_EQ(interval.steps, 2);
  EXPECT_DOUBLE_EQ(interval.parts.data, 2);
  EXPECT_DOUBLE_EQ(interval.parts.Sum(), 5);
  EXPECT_DOUBLE_EQ(interval.loss, (4.0 * 10 + 1.0 * 30) / 40);
  EXPECT_DOUBLE_EQ(interval.images_per_second, 4);
  EXPECT_EQ(meter.Take().steps, 0);
  EXPECT_DOUBLE_EQ(meter.total_seconds(), 10);
}

TEST(Utilisation, IsProcessorTimeOverTimeSinceTheLastTake) {
  const absl::Time start = absl::FromUnixSeconds(100);
  Utilisation utilisation;
  utilisation.Begin(start, absl::Seconds(7));
  EXPECT_DOUBLE_EQ(utilisation.Take(start + absl::Seconds(4), absl::Seconds(13)), 1.5);
  EXPECT_DOUBLE_EQ(utilisation.Take(start + absl::Seconds(6), absl::Seconds(14)), 0.5);
  EXPECT_DOUBLE_EQ(utilisation.Take(start + absl::Seconds(6), absl::Seconds(15)), 0);
}

TEST(Utilisation, ProcessorTimeIsThatOfAllThreads) {
  const absl::Duration before = ProcessorTime();
  timespec used = {};
  std::thread([&used] {
    do {
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    } while (used.tv_nsec < 20'000'000);
  }).join();
  EXPECT_GE(ProcessorTime() - before, absl::DurationFromTimespec(used) - absl::Milliseconds(1));
}

TEST(MetricsFile, WritesOneJsonObjectALineToEveryPath) {
  const base::TemporaryDirectory folder;
  const base::ManualClock clock(absl::FromUnixSeconds(100));
  const auto a = folder.path() / "a", b = folder.path() / "b";
  for (int run = 0; run < 2; ++run) {  // the second appends
    auto metrics = MetricsFile::Open({a, b}, clock);
    ASSERT_TRUE(metrics.ok());
    ASSERT_TRUE(metrics->Write("step", {{"loss", 1.5}}).ok());
  }
  const std::string text = *base::ReadFile(a);
  EXPECT_EQ(text, *base::ReadFile(b));
  const auto line = nlohmann::json::parse(text.substr(0, text.find('\n')));
  EXPECT_EQ(line, nlohmann::json({{"event", "step"}, {"time", 100.0}, {"loss", 1.5}}));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST(MetricsFile, NamesThePathThatCannotBeOpened) {
  const base::SystemClock clock;
  const auto metrics = MetricsFile::Open({"/nowhere/at/all"}, clock);
  EXPECT_THAT(std::string(metrics.status().message()), HasSubstr("/nowhere/at/all"));
}

// Writes with a limit on the size of files, as on a disk that has no room for more.
template <typename Body>
void WithFilesUpTo(uint64_t bytes, const Body& body) {
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit old = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit low = {bytes, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  body();
  ::setrlimit(RLIMIT_FSIZE, &old);
  ::signal(SIGXFSZ, handler);
}

TEST(MetricsFile, AFullDiskIsNamedAndLeavesNoHalfLineAndTheOthersHaveIt) {
  const base::TemporaryDirectory folder;
  const base::ManualClock clock(absl::FromUnixSeconds(100));
  const auto full = folder.path() / "full", roomy = folder.path() / "roomy";
  auto metrics = MetricsFile::Open({full, roomy}, clock);
  ASSERT_TRUE(metrics.ok());
  ASSERT_TRUE(base::WriteFileAtomic(full, std::string(1000, '\n')).ok());
  metrics = MetricsFile::Open({full, roomy}, clock);
  WithFilesUpTo(1010, [&] {
    const absl::Status status = metrics->Write("step", {{"loss", 1.5}});
    EXPECT_THAT(std::string(status.message()), HasSubstr(full.string()));
  });
  EXPECT_EQ(std::filesystem::file_size(full), 1000u);
  EXPECT_EQ(base::ReadFile(roomy).value().back(), '\n');
}

// What a RunReport said to the user while its metrics could not be written for some time.
TEST(RunReport, AFullDiskIsToldOnceAndWhenItIsOver) {
  const base::TemporaryDirectory folder;
  const base::ManualClock clock(absl::FromUnixSeconds(100));
  const auto metrics = folder.path() / "metrics", said = folder.path() / "said";
  ReportSinks sinks;
  sinks.metrics = {metrics};
  sinks.out = std::fopen(said.c_str(), "w");
  const auto report = RunReport::Open({}, sinks, clock).value();
  ASSERT_TRUE(report->Started({.steps = 9, .steps_per_epoch = 1}, 0).ok());
  const uint64_t before = std::filesystem::file_size(metrics);
  std::fflush(sinks.out);
  const uint64_t said_before = std::filesystem::file_size(said);
  WithFilesUpTo(before + 5, [&] {
    for (int64_t step = 1; step <= 3; ++step) report->Unreadable(step, 0);
  });
  EXPECT_EQ(std::filesystem::file_size(metrics), before);
  for (int64_t step = 4; step <= 9; ++step) report->Unreadable(step, 0);
  std::fclose(sinks.out);
  EXPECT_EQ(base::ReadFile(said)->substr(said_before),
            "warning: a report is missing from its file: write " + metrics.string() +
                ": File too large\n"
                "warning: 3 reports are missing from the files; they are written again\n");
}

// A job's metrics are read from both: under two names one would be shown twice.
TEST(RunReport, MlflowIsToldAStepUnderTheNamesOfTheMetricsFile) {
  const base::TemporaryDirectory folder;
  const base::ManualClock clock(absl::FromUnixSeconds(100));
  ReportSinks sinks;
  sinks.metrics = {folder.path() / "metrics"};
  sinks.mlflow.store = folder.path() / "mlruns";
  const auto report = RunReport::Open({.output = folder.path()}, sinks, clock).value();
  ASSERT_TRUE(report->Started({.steps = 9, .steps_per_epoch = 1}, 0).ok());
  Meter meter;
  meter.Add({.data = 1, .forward = 2}, /*loss=*/3, /*images=*/4);
  report->Stepped(meter, /*step=*/1, /*learning_rate=*/0.5, /*last_of_epoch=*/true);
  const std::string text = *base::ReadFile(sinks.metrics[0]);
  const auto line = nlohmann::json::parse(text.substr(text.find('\n') + 1));
  const std::string id = *base::ReadFile(folder.path() / "mlflow-run");
  const auto run = FindMlflowRun(sinks.mlflow.store, id.substr(0, id.find('\n')));
  ASSERT_TRUE(run);
  size_t told = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(*run / "metrics")) {
    EXPECT_TRUE(line.contains(entry.path().filename().string())) << entry;
    EXPECT_EQ(entry.path().parent_path(), *run / "metrics");
    ++told;
  }
  EXPECT_EQ(told, 4 + kStepParts.size()) << "loss, learning rate, speed, processors, and the parts";
}

// What a Progress wrote to a file.
class ProgressText : public testing::Test {
 protected:
  std::string Text() const { return *base::ReadFile(path_); }

  const base::TemporaryDirectory folder_;
  const std::filesystem::path path_ = folder_.path() / "out";
  std::FILE* const out_ = std::fopen(path_.c_str(), "w");
  base::ManualClock clock_;
  const Position position_{.epoch = 3,
                           .epochs = 18,
                           .step = 120,
                           .steps = 702,
                           .learning_rate = 0.0875,
                           .seconds_left = 95};
  const Interval interval_{.loss = 1.43214, .images_per_second = 1502.2};

  ~ProgressText() override { std::fclose(out_); }
};

TEST_F(ProgressText, IsAPlainLineNowAndThenInALog) {
  Progress progress(out_, false, absl::Seconds(5), clock_);
  progress.Step(position_, interval_);
  EXPECT_EQ(Text(),
            "epoch  3/18  step 120/702  loss 1.4321  lr 0.0875  1502 images/s  1 min 35 s left\n");
  progress.Step(position_, interval_);
  clock_.Advance(absl::Seconds(4));
  progress.Step(position_, interval_);
  const std::string early = Text();
  EXPECT_EQ(std::count(early.begin(), early.end(), '\n'), 1);
  clock_.Advance(absl::Seconds(1));
  progress.Step(position_, interval_);
  const std::string text = Text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST_F(ProgressText, IsABarOnATerminalAndLinesStayAboveIt) {
  {
    Progress progress(out_, true, absl::Seconds(5), clock_);
    progress.Step(position_, interval_);
    EXPECT_THAT(Text(), Not(HasSubstr("\n")));
    EXPECT_THAT(Text(), HasSubstr("━"));
    progress.Line("top-1 50 %");
  }
  EXPECT_THAT(Text(), HasSubstr("\r\x1b[Ktop-1 50 %\n"));
}

TEST_F(ProgressText, SaysNothingWithoutAnOutput) {
  Progress progress(nullptr, false, absl::Seconds(5), clock_);
  progress.Step(position_, interval_);
  progress.Line("nothing");
  EXPECT_EQ(Text(), "");
}

TEST(DescribeSeconds, UsesTheUnitsThatMatter) {
  EXPECT_EQ(DescribeSeconds(0.4), "0 s");
  EXPECT_EQ(DescribeSeconds(200), "3 min 20 s");
  EXPECT_EQ(DescribeSeconds(7500), "2 h 5 min");
}

}  // namespace
}  // namespace tutti::train
