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
      : job_(job), sweep_(*job.sweep), seed_(seed), now_(now), trials_(now.trials) {
    decision_.best = trials_.best();
    decision_.best_metric = trials_.best_metric();
  }

  SweepDecision Decide() {
    SweepDecision& d = decision_;
    const bool hopeless = trials_.failed() >= kHopeless && trials_.failed() == trials_.ended();
    const bool halted = now_.canceled || now_.timed_out || hopeless;
    if (halted) {
      StopAll(now_.timed_out ? "the sweep's time limit has passed"
              : hopeless     ? "the first trials have failed"
                             : "the sweep is being canceled");
    } else {
      d.stops = trials_.TrialsToStop();
      StartOne();
    }
    if (trials_.active().empty() && !d.starts && d.to_propose == 0) {
      End(hopeless);
    } else {
      d.line = Progress();
    }
    return std::move(d);
  }

 private:
  void StopAll(const std::string& reason) {
    for (const int number : trials_.active()) decision_.stops.push_back({number, reason});
  }

  void StartOne() {
    const int room =
        std::min(sweep_.max_concurrent - static_cast<int>(trials_.active().size()), now_.may_start);
    if (room <= 0) return;
    const bool learns = sweep_.sampling == spec::Sampling::kBayesian;
    if (learns && now_.proposed == nullptr) {
      decision_.to_propose = std::min(room, TrialCount(sweep_) - trials_.size());
      return;
    }
    std::optional<Values> values =
        learns ? std::optional(*now_.proposed) : Propose(sweep_, seed_, trials_.size() + 1, {});
    if (!values) return;
    decision_.starts = true;
    decision_.values = *std::move(values);
  }

  std::string Best() const {
    return absl::StrCat("best ", TrialName(decision_.best), " with ", sweep_.metric, " ",
                        absl::StrFormat("%.6g", decision_.best_metric));
  }

  std::string Counts() const {
    std::string counts = absl::StrCat(trials_.completed(), " of ", TrialCount(sweep_),
                                      TrialCount(sweep_) == 1 ? " trial" : " trials", " completed");
    if (trials_.stopped() > 0) absl::StrAppend(&counts, ", ", trials_.stopped(), " stopped");
    if (trials_.failed() > 0) absl::StrAppend(&counts, ", ", trials_.failed(), " failed");
    return counts;
  }

  std::string Progress() const {
    std::string line = Counts();
    const size_t active = trials_.active().size();
    if (active > 0) absl::StrAppend(&line, ", ", active, " under way");
    if (decision_.best > 0) absl::StrAppend(&line, "; ", Best());
    return line;
  }

  std::string FirstFailure() const {
    return absl::StrCat(TrialName(trials_.first_failure()),
                        " failed: ", trials_.reason_of_first_failure());
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
    } else if (hopeless || trials_.completed() == 0) {
      d.outcome = Outcome::kFailed;
      d.line = trials_.first_failure() > 0
                   ? absl::StrCat(FirstFailure(),
                                  hopeless && trials_.failed() > 1 ? "; so did the others" : "")
                   : "no trial completed";
    } else {
      d.outcome = Outcome::kFailed;
      d.line = NoMetric();
    }
  }

  std::string NoMetric() const {
    const std::set<std::string>& others = trials_.other_metrics();
    const std::vector<absl::string_view> names(others.begin(), others.end());
    const std::string& odd_line = trials_.odd_line();
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
  const SweepTrials& trials_;
  SweepDecision decision_;
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
