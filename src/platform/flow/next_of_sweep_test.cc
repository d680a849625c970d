// Covers: metric_reports.cc, step_key.cc.
#include "platform/flow/next_of_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/flow/metric_reports.h"
#include "platform/flow/step_key.h"

namespace tutti::flow {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

spec::JobSpec Job(int trials = 4, int at_once = 2) {
  spec::JobSpec job;
  job.kind = spec::JobKind::kSweep;
  job.sweep.emplace();
  job.sweep->parameters = {{.name = "x", .kind = spec::SearchKind::kUniform}};
  job.sweep->metric = "loss";
  job.sweep->max_trials = trials;
  job.sweep->max_concurrent = at_once;
  return job;
}

// A trial as it stands.
struct Trial {
  ChildState state = ChildState::kActive;
  std::string reason;
  MetricReports reports;
};

Trial Done(double loss) { return {.state = ChildState::kCompleted, .reports = {.values = {loss}}}; }
Trial Failed(const std::string& reason = "exit code 1") {
  return {.state = ChildState::kFailed, .reason = reason};
}

struct Now {
  std::vector<Trial> trials;
  bool canceled = false, timed_out = false, may_start = true;
};

SweepTrials TrialsOf(const spec::Sweep& sweep, const std::vector<Trial>& all) {
  SweepTrials trials(sweep);
  for (const Trial& trial : all) {
    trials.Start({"1"});
    trials.Report(trials.size(), trial.reports);
    if (trial.state != ChildState::kActive) trials.End(trials.size(), trial.state, trial.reason);
  }
  return trials;
}

SweepDecision Next(const spec::JobSpec& job, uint64_t seed, const Now& now) {
  const SweepTrials trials = TrialsOf(*job.sweep, now.trials);
  return NextOfSweep(job, seed, {trials, now.canceled, now.timed_out, now.may_start});
}

TEST(NextOfSweep, StartsAsManyAsMayRunAtOnce) {
  EXPECT_TRUE(Next(Job(), 1, {}).starts);
  EXPECT_EQ(Next(Job(), 1, {}).values, *Propose(*Job().sweep, 1, 1, {}));
  EXPECT_TRUE(Next(Job(), 1, {.trials = {Trial{}}}).starts);
  EXPECT_FALSE(Next(Job(), 1, {.trials = {Trial{}, Trial{}}}).starts);
  EXPECT_TRUE(Next(Job(), 1, {.trials = {Done(1), Trial{}}}).starts);
}

TEST(NextOfSweep, BayesianTrialsStartWithValuesThatWereProposed) {
  spec::JobSpec job = Job(5, 3);
  job.sweep->sampling = spec::Sampling::kBayesian;
  const SweepTrials none = TrialsOf(*job.sweep, {});
  EXPECT_EQ(NextOfSweep(job, 1, {.trials = none, .may_start = 9}).to_propose, 3);
  const SweepDecision asks = NextOfSweep(job, 1, {.trials = none, .may_start = 2});
  EXPECT_EQ(asks.to_propose, 2);
  EXPECT_FALSE(asks.starts);
  EXPECT_EQ(asks.outcome, Outcome::kNone) << "none has ended, but more are to come";
  const SweepTrials most = TrialsOf(*job.sweep, {Done(1), Done(2), Done(3), Done(4)});
  EXPECT_EQ(NextOfSweep(job, 1, {.trials = most, .may_start = 9}).to_propose, 1) << "of five";
  const Values values = {"0.25"};
  const SweepDecision starts =
      NextOfSweep(job, 1, {.trials = most, .may_start = 9, .proposed = &values});
  EXPECT_TRUE(starts.starts);
  EXPECT_EQ(starts.values, values);
  EXPECT_EQ(starts.to_propose, 0);
  const SweepDecision canceled =
      NextOfSweep(job, 1, {.trials = none, .canceled = true, .proposed = &values});
  EXPECT_FALSE(canceled.starts);
  EXPECT_EQ(canceled.outcome, Outcome::kCanceled);
}

TEST(NextOfSweep, NamesTheBestTrialAtItsEnd) {
  const auto end = Next(Job(3), 1, {.trials = {Done(0.5), Done(0.25), Failed()}});
  EXPECT_EQ(end.outcome, Outcome::kCompleted);
  EXPECT_EQ(end.best, 2);
  EXPECT_EQ(end.line, "best trial-2 with loss 0.25; 2 of 3 trials completed, 1 failed");
  spec::JobSpec most = Job(2);
  most.sweep->maximize = true;
  EXPECT_EQ(Next(most, 1, {.trials = {Done(0.5), Done(0.25)}}).best, 1);
}

TEST(NextOfSweep, StartsNoneWhereItMayNot) {
  const auto now = Next(Job(), 1, {.trials = {Trial{}}, .may_start = false});
  EXPECT_FALSE(now.starts);
  EXPECT_EQ(now.outcome, Outcome::kNone);
}

TEST(NextOfSweep, GivesUpWhenTheFirstTrialsAllFail) {
  const auto now =
      Next(Job(20), 1, {.trials = {Failed("exit code 2"), Failed(), Failed(), Trial{}}});
  EXPECT_FALSE(now.starts);
  ASSERT_EQ(now.stops.size(), 1u);
  EXPECT_EQ(now.stops[0].number, 4);
  const auto end = Next(Job(20), 1, {.trials = {Failed("exit code 2"), Failed(), Failed()}});
  EXPECT_EQ(end.outcome, Outcome::kFailed);
  EXPECT_EQ(end.line, "trial-1 failed: exit code 2; so did the others");
  EXPECT_TRUE(Next(Job(20), 1, {.trials = {Failed(), Done(1), Failed(), Failed()}}).starts);
}

TEST(NextOfSweep, SaysWhichMetricsCameInPlaceOfTheOneThatWasAskedFor) {
  Trial trial{.state = ChildState::kCompleted, .reports = {.other_names = {"Loss", "accuracy"}}};
  const auto end = Next(Job(1), 1, {.trials = {trial}});
  EXPECT_EQ(end.outcome, Outcome::kFailed);
  EXPECT_THAT(end.line,
              HasSubstr("no trial reported the metric \"loss\" (did you mean \"Loss\"?)"));
  trial.reports.other_names.clear();
  EXPECT_THAT(Next(Job(1), 1, {.trials = {trial}}).line, HasSubstr("mlflow.log_metric"));
}

TEST(NextOfSweep, ShowsTheShapeOfALineOfMetricsAndTheOneThatHasAnother) {
  const std::string line = R"({"name": "loss", "value": 0.3})";
  Trial trial{.state = ChildState::kCompleted, .reports = {.odd_line = line}};
  const std::string told = Next(Job(1), 1, {.trials = {trial}}).line;
  EXPECT_THAT(told, HasSubstr(R"(a line {"event": "metric", "name": "loss", "value": 0.5} to )"
                              "$TUTTI_METRICS_FILE"));
  EXPECT_THAT(told, HasSubstr("; a line in $TUTTI_METRICS_FILE has another shape: " + line));
}

TEST(MetricReports, KeepTheFirstLineThatReportsNothing) {
  for (const std::string odd :
       {R"({"name": "loss", "value": 0.3})", R"({"loss": "0.3"})", R"({"loss": NaN})", "loss=0.3",
        R"({"event": "metric", "name": "loss", "value": "0.3"})", R"({"event": "metric"})"}) {
    EXPECT_EQ(ReportsInMetricsFile(odd + "\n[1]\n", "loss").odd_line, odd);
  }
  EXPECT_THAT(ReportsInMetricsFile(std::string(1000, 'x'), "loss").odd_line, EndsWith("xx…"));
  for (const char* line : {R"({"loss": 0.3})", R"({"top1": 0.3, "name": "a"})", "  ",
                           R"({"event": "checkpoint", "path": "a"})",
                           R"({"event": "metric", "name": "loss", "value": 1})"}) {
    EXPECT_EQ(ReportsInMetricsFile(line, "loss").odd_line, "") << line;
  }
}

TEST(MetricReports, WhatIsNotFiniteIsNoReport) {
  EXPECT_THAT(ReportsInMetricsFile("{\"loss\": NaN}\n{\"loss\": -Infinity}\n{\"loss\": null}\n"
                                   "{\"loss\": 1e999}\n{\"loss\": 0.5}\n",
                                   "loss")
                  .values,
              ElementsAre(0.5));
}

TEST(MetricReports, AMetricBesideOneThatIsNotFiniteIsAReport) {
  const MetricReports reports = ReportsInMetricsFile(
      R"({"note": "\"NaN", "loss": 0.5, "norm": Infinity, "b": NaN, "c": -Infinity})", "loss");
  EXPECT_THAT(reports.values, ElementsAre(0.5));
  EXPECT_EQ(reports.odd_line, "");
}

TEST(NextOfSweep, ACancelOrTheTimeLimitStopsEveryTrialAndKeepsTheBest) {
  const auto now = Next(Job(), 1, {.trials = {Done(1), Trial{}}, .canceled = true});
  EXPECT_FALSE(now.starts);
  ASSERT_EQ(now.stops.size(), 1u);
  const auto end = Next(Job(), 1, {.trials = {Done(1)}, .canceled = true});
  EXPECT_EQ(end.outcome, Outcome::kCanceled);
  EXPECT_EQ(end.best, 1);
  spec::JobSpec limited = Job();
  limited.timeout = absl::Seconds(90);
  const auto late = Next(limited, 1, {.trials = {Done(1)}, .timed_out = true});
  EXPECT_EQ(late.outcome, Outcome::kFailed);
  EXPECT_THAT(late.line, HasSubstr("its time limit of 1m30s has passed"));
  EXPECT_THAT(late.line, HasSubstr("best trial-1"));
}

TEST(MetricReports, TakesEveryLineThatHasTheMetric) {
  const auto reports = ReportsInMetricsFile(
      "{\"event\": \"step\", \"step\": 1, \"loss\": 0.5}\nno json\n"
      "{\"event\": \"metric\", \"name\": \"loss\", \"value\": 0.25}\n"
      "{\"event\": \"evaluation\", \"top1\": 0.9, \"loss\": \"text\"}\n[1]\n",
      "loss");
  EXPECT_THAT(reports.values, ElementsAre(0.5, 0.25));
  EXPECT_THAT(reports.other_names, ElementsAre("top1"));
  EXPECT_THAT(ReportsInMlflowFile("1700000000000 0.5 0\nx\n1700000000001 0.25 1\n"),
              ElementsAre(0.5, 0.25));
  EXPECT_THAT(ReportsInMlflowFile("1 nan 0\n"), IsEmpty());
}

TEST(StepKey, FollowsWhatTheResultsFollowFromAndNothingElse) {
  spec::JobSpec job;
  job.command = "python train.py";
  job.inputs["data"].path = "/a";
  job.environment.packages = {{"numpy", "conda.yaml:3"}};
  const std::map<std::string, std::string> digests = {{"data", "folder:1"}};
  const std::string key = StepKey(job, "sha256:1", digests);
  spec::JobSpec renamed = job;
  renamed.display_name = "other";
  renamed.inputs["data"].path = "/b";
  renamed.inputs["data"].location.line = 9;
  renamed.environment.packages[0].location = "conda.yaml:7";
  renamed.timeout = absl::Seconds(1);
  EXPECT_EQ(StepKey(renamed, "sha256:1", digests), key);
  spec::JobSpec changed = job;
  changed.command += " --fast";
  EXPECT_NE(StepKey(changed, "sha256:1", digests), key);
  changed = job;
  changed.environment_variables["A"] = "1";
  EXPECT_NE(StepKey(changed, "sha256:1", digests), key);
  changed = job;
  changed.resume = "earlier";
  EXPECT_NE(StepKey(changed, "sha256:1", digests), key);
  EXPECT_NE(StepKey(job, "sha256:2", digests), key);
  EXPECT_NE(StepKey(job, "sha256:1", {{"data", "folder:2"}}), key);

  const std::map<std::string, std::string> file = {{"data", "file:1"}};
  spec::JobSpec first = job, moved = job, named = job;
  first.inputs["data"].path = "/a/train.csv";
  moved.inputs["data"].path = "/b/train.csv";
  named.inputs["data"].path = "/a/train.json";
  EXPECT_EQ(StepKey(first, "sha256:1", file), StepKey(moved, "sha256:1", file));
  EXPECT_NE(StepKey(first, "sha256:1", file), StepKey(named, "sha256:1", file));
}

TEST(TrialName, ComesBack) {
  EXPECT_EQ(TrialName(12), "trial-12");
  EXPECT_EQ(TrialNumber("trial-12"), 12);
  EXPECT_EQ(TrialNumber("train"), 0);
}

}  // namespace
}  // namespace tutti::flow
