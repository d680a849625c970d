#include "platform/flow/next_of_sweep.h"

#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/text/closest.h"

namespace tutti::flow {
namespace {

// When as many as that have failed and nothing else came of it, the rest would fail too.
constexpr int kHopeless = 3;

class Search {
 public:
  Search(const spec::JobSpec& job, uint64_t seed, const SweepNow& now)
      : job_(job), sweep_(*job.sweep), seed_(seed), now_(now) {
    for (size_t i = 0; i < now.trials.size(); ++i) Count(static_cast<int>(i) + 1, now.trials[i]);
  }

  SweepDecision Decide() {
    SweepDecision& d = decision_;
    const bool hopeless = failed_ >= kHopeless && failed_ == ended_;
    const bool halted = now_.canceled || now_.timed_out || hopeless;
    if (halted) {
      StopAll(now_.timed_out ? "the sweep's time limit has passed"
              : hopeless     ? "the first trials have failed"
                             : "the sweep is being canceled");
    } else {
      StopTheWorse();
      StartOne();
    }
    if (active_ == 0 && !d.starts) {
      End(hopeless);
    } else {
      d.line = Progress();
    }
    return std::move(d);
  }

 private:
  void Count(int number, const Trial& trial) {
    switch (trial.child.state) {
      case ChildState::kActive:
        ++active_;
        return;
      case ChildState::kFailed:
        ++failed_;
        if (first_failure_ == 0) first_failure_ = number;
        break;
      case ChildState::kCanceled:
        ++stopped_;
        break;
      case ChildState::kCompleted:
        ++completed_;
        if (!trial.reports.empty()) Compare(number, BestOf(sweep_, trial.reports));
        break;
    }
    ++ended_;
  }

  void Compare(int number, double metric) {
    const bool better = decision_.best == 0 || (sweep_.maximize ? metric > decision_.best_metric
                                                                : metric < decision_.best_metric);
    if (!better) return;
    decision_.best = number;
    decision_.best_metric = metric;
  }

  void StopAll(const std::string& reason) {
    for (size_t i = 0; i < now_.trials.size(); ++i) {
      if (now_.trials[i].child.state != ChildState::kActive) continue;
      decision_.stops.push_back({static_cast<int>(i) + 1, reason});
    }
  }

  void StopTheWorse() {
    std::vector<TrialReports> reports;
    for (size_t i = 0; i < now_.trials.size(); ++i) {
      const Trial& trial = now_.trials[i];
      reports.push_back(
          {static_cast<int>(i) + 1, trial.child.state == ChildState::kActive, trial.reports});
    }
    decision_.stops = TrialsToStop(sweep_, reports);
  }

  void StartOne() {
    if (active_ >= sweep_.max_concurrent) return;
    std::vector<Observation> seen;
    for (const Trial& trial : now_.trials) {
      const bool known = trial.child.state == ChildState::kCompleted && !trial.reports.empty();
      if (known) seen.push_back({trial.values, BestOf(sweep_, trial.reports)});
    }
    const int number = static_cast<int>(now_.trials.size()) + 1;
    if (auto values = Propose(sweep_, seed_, number, seen)) {
      decision_.starts = true;
      decision_.values = *std::move(values);
    }
  }

  std::string Best() const {
    return absl::StrCat("best ", TrialName(decision_.best), " with ", sweep_.metric, " ",
                        absl::StrFormat("%.6g", decision_.best_metric));
  }

  std::string Counts() const {
    std::string counts = absl::StrCat(completed_, " of ", TrialCount(sweep_),
                                      TrialCount(sweep_) == 1 ? " trial" : " trials", " completed");
    if (stopped_ > 0) absl::StrAppend(&counts, ", ", stopped_, " stopped");
    if (failed_ > 0) absl::StrAppend(&counts, ", ", failed_, " failed");
    return counts;
  }

  std::string Progress() const {
    std::string line = Counts();
    if (active_ > 0) absl::StrAppend(&line, ", ", active_, " under way");
    if (decision_.best > 0) absl::StrAppend(&line, "; ", Best());
    return line;
  }

  std::string FirstFailure() const {
    return absl::StrCat(TrialName(first_failure_),
                        " failed: ", now_.trials[first_failure_ - 1].child.reason);
  }

  void End(bool hopeless) {
    SweepDecision& d = decision_;
    if (now_.canceled) {
      d.outcome = Outcome::kCanceled;
      d.line = d.best > 0 ? absl::StrCat("canceled; ", Best()) : "canceled";
    } else if (now_.timed_out) {
      d.outcome = Outcome::kFailed;
      d.line = absl::StrCat("its time limit of ", absl::FormatDuration(job_.timeout),
                            " has passed; ", Counts(), d.best > 0 ? "; " + Best() : "");
    } else if (d.best > 0) {
      d.outcome = Outcome::kCompleted;
      d.line = absl::StrCat(Best(), "; ", Counts());
    } else if (hopeless || completed_ == 0) {
      d.outcome = Outcome::kFailed;
      d.line =
          first_failure_ > 0
              ? absl::StrCat(FirstFailure(), hopeless && failed_ > 1 ? "; so did the others" : "")
              : "no trial completed";
    } else {
      d.outcome = Outcome::kFailed;
      d.line = NoMetric();
    }
  }

  std::string NoMetric() const {
    std::set<std::string> others;
    std::string odd_line;
    for (const Trial& trial : now_.trials) {
      if (odd_line.empty()) odd_line = trial.odd_line;
      others.insert(trial.other_metrics.begin(), trial.other_metrics.end());
    }
    const std::vector<absl::string_view> names(others.begin(), others.end());
    std::string line = absl::StrCat("no trial reported the metric \"", sweep_.metric, "\"",
                                    base::DidYouMean(sweep_.metric, names));
    if (names.empty()) {
      absl::StrAppend(&line,
                      ": write it with mlflow.log_metric, or as a line {\"event\": \"metric\", ",
                      "\"name\": \"", sweep_.metric, "\", \"value\": 0.5} to $TUTTI_METRICS_FILE");
    } else {
      absl::StrAppend(&line, "; they reported ", absl::StrJoin(names, ", ").substr(0, 300));
    }
    if (!odd_line.empty()) {
      absl::StrAppend(&line, "; a line in $TUTTI_METRICS_FILE has another shape: ", odd_line);
    }
    return line;
  }

  const spec::JobSpec& job_;
  const spec::Sweep& sweep_;
  const uint64_t seed_;
  const SweepNow& now_;
  SweepDecision decision_;
  int active_ = 0, completed_ = 0, failed_ = 0, stopped_ = 0, ended_ = 0, first_failure_ = 0;
};

}  // namespace

SweepDecision NextOfSweep(const spec::JobSpec& job, uint64_t seed, const SweepNow& now) {
  return Search(job, seed, now).Decide();
}

std::string TrialName(int number) { return absl::StrCat("trial-", number); }

int TrialNumber(const std::string& name) {
  absl::string_view rest = name;
  int number = 0;
  return absl::ConsumePrefix(&rest, "trial-") && absl::SimpleAtoi(rest, &number) ? number : 0;
}

double BestOf(const spec::Sweep& sweep, const std::vector<double>& reports) {
  return sweep.maximize ? *std::max_element(reports.begin(), reports.end())
                        : *std::min_element(reports.begin(), reports.end());
}

}  // namespace tutti::flow
