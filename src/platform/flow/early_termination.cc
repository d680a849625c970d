#include "platform/flow/early_termination.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "platform/flow/running_best.h"
#include "platform/flow/sorted_values.h"
#include "spec/types/enum_names.h"

namespace tutti::flow {

// StoppingRule is one of the three policies: what it keeps of all trials' reports, and how it
// judges one.
class StoppingRule {
 public:
  virtual ~StoppingRule() = default;
  // Takes the reports of a trial behind the first `known` ones, which it has taken before.
  virtual void Report(const ReportSeries& reports, size_t known) = 0;
  // Forgets these of a trial that has not ended; `others` have not either.
  virtual void Retract(const ReportSeries& reports, const ActiveReports& others) = 0;
  // Notes that the trial with these has ended.
  virtual void End(const ReportSeries& reports) = 0;
  // Is called before a decision, with the intervals at which trials will be judged.
  virtual void Prepare(const ActiveReports& active, const std::set<size_t>& intervals) = 0;
  // Says why the trial with these reports is to be stopped at that interval, which it has reached;
  // "": it is not.
  virtual std::string WhyStopped(const ReportSeries& reports, size_t interval) const = 0;
};

namespace {

using Kind = spec::EarlyTermination::Kind;

constexpr size_t kBlock = 32;

// A sweep's metric, turned so that greater is better.
class Metric {
 public:
  explicit Metric(const spec::Sweep& sweep) : name_(sweep.metric), maximize_(sweep.maximize) {}

  double Turned(double value) const { return maximize_ ? value : -value; }
  double BestUntil(const ReportSeries& reports, size_t count) const {
    return maximize_ ? reports.Highest(count) : -reports.Lowest(count);
  }
  double AverageUntil(const ReportSeries& reports, size_t count) const {
    return Turned(reports.Sum(count)) / static_cast<double>(count);
  }
  std::string Shown(double turned) const {
    return absl::StrCat(name_, " ", absl::StrFormat("%.6g", Turned(turned)));
  }

 private:
  const std::string name_;
  const bool maximize_;
};

class Bandit final : public StoppingRule {
 public:
  explicit Bandit(const spec::Sweep& sweep) : metric_(sweep), policy_(sweep.early_termination) {}

  void Report(const ReportSeries& reports, size_t known) override { Take(reports, known, best_); }
  // The best of all does not tell what it would be without this one.
  void Retract(const ReportSeries&, const ActiveReports& others) override {
    best_ = best_of_ended_;
    for (const auto& [number, reports] : others) Take(reports, 0, best_);
  }
  void End(const ReportSeries& reports) override { Take(reports, 0, best_of_ended_); }
  void Prepare(const ActiveReports&, const std::set<size_t>&) override {}

  std::string WhyStopped(const ReportSeries& reports, size_t interval) const override {
    const double best = best_.Until(interval);
    const double own = metric_.BestUntil(reports, interval);
    if (!(own < Threshold(best))) return "";
    return absl::StrCat("its best ", metric_.Shown(own), " is beyond the slack of the best, ",
                        metric_.Shown(best));
  }

 private:
  void Take(const ReportSeries& reports, size_t known, RunningBest& best) const {
    for (size_t i = known; i < reports.size(); ++i) best.Add(i + 1, metric_.Turned(reports[i]));
  }
  // The worst that a trial may have beside a best of `best`.
  double Threshold(double best) const {
    if (policy_.slack_amount > 0) return best - policy_.slack_amount;
    const double slack = 1 + policy_.slack_factor;
    return best > 0 ? best / slack : best * slack;
  }

  const Metric metric_;
  const spec::EarlyTermination policy_;
  RunningBest best_, best_of_ended_;
};

// Keeps a number of each trial for each interval that it has reached.
class ByInterval : public StoppingRule {
 public:
  explicit ByInterval(const spec::Sweep& sweep)
      : metric_(sweep),
        every_(static_cast<size_t>(sweep.early_termination.evaluation_interval)),
        first_(static_cast<size_t>(std::max(sweep.early_termination.delay_evaluation, 1))) {}

  void Report(const ReportSeries& reports, size_t known) override {
    for (size_t count = Next(known); count <= reports.size(); count += every_) {
      reached_[At(count)].Add(NumberAt(reports, count));
    }
  }
  void Retract(const ReportSeries& reports, const ActiveReports&) override {
    for (size_t count = Next(0); count <= reports.size(); count += every_) {
      reached_[At(count)].Remove(NumberAt(reports, count));
    }
  }

 protected:
  // Returns what others are compared with of a trial whose first `count` reports are these.
  virtual double NumberAt(const ReportSeries& reports, size_t count) const = 0;

  const Metric& metric() const { return metric_; }
  SortedValues& Reached(size_t interval) { return reached_[At(interval)]; }
  const SortedValues& Reached(size_t interval) const { return reached_[interval / every_ - 1]; }

 private:
  // Returns the first interval behind `count` reports at which the policy looks.
  size_t Next(size_t count) const {
    const size_t least = std::max(count + 1, first_);
    return (least + every_ - 1) / every_ * every_;
  }
  size_t At(size_t interval) {
    const size_t at = interval / every_ - 1;
    if (at >= reached_.size()) reached_.resize(at + 1);
    return at;
  }

  const Metric metric_;
  const size_t every_, first_;
  std::vector<SortedValues> reached_;  // from the first multiple of every_ on
};

class MedianStopping final : public ByInterval {
 public:
  explicit MedianStopping(const spec::Sweep& sweep) : ByInterval(sweep) {}

  void End(const ReportSeries& reports) override {
    ended_.push_back({reports.size(), NumberAt(reports, reports.size())});
  }

  // A trial that has not come as far as an interval counts there with what it has reported, so the
  // further the interval, the more of these there are.
  void Prepare(const ActiveReports& active, const std::set<size_t>& intervals) override {
    std::vector<Short> behind;
    for (const auto& [number, reports] : active) {
      behind.push_back({reports.size(), NumberAt(reports, reports.size())});
    }
    std::sort(behind.begin(), behind.end(),
              [](const Short& a, const Short& b) { return a.count < b.count; });
    medians_.clear();
    SortedValues short_of_it;
    auto next = behind.begin();
    for (const size_t interval : intervals) {
      for (; next != behind.end() && next->count < interval; ++next) short_of_it.Add(next->number);
      TakeEnded(interval);
      medians_[interval] = Median(Reached(interval), short_of_it);
    }
  }

  std::string WhyStopped(const ReportSeries& reports, size_t interval) const override {
    const double median = medians_.at(interval);
    const double own = metric().BestUntil(reports, interval);
    if (!(own < median)) return "";
    return absl::StrCat("its best ", metric().Shown(own),
                        " is worse than the median of the averages, ", metric().Shown(median));
  }

 private:
  // A trial that came no further than `count` reports.
  struct Short {
    size_t count = 0;
    double number = 0;
  };

  // A sum is rounded: the average of equal reports must not be above each of them.
  double NumberAt(const ReportSeries& reports, size_t count) const override {
    return std::min(metric().AverageUntil(reports, count), metric().BestUntil(reports, count));
  }

  // Adds to an interval those trials that have ended before they came as far.
  void TakeEnded(size_t interval) {
    size_t& taken = ended_taken_[interval];
    std::vector<double> numbers;
    for (; taken < ended_.size(); ++taken) {
      if (ended_[taken].count < interval) numbers.push_back(ended_[taken].number);
    }
    if (!numbers.empty()) Reached(interval).Add(numbers);
  }

  std::vector<Short> ended_;              // in the order in which they ended
  std::map<size_t, size_t> ended_taken_;  // by interval: how many of these
  std::map<size_t, double> medians_;      // by interval, of the decision at hand
};

class TruncationSelection final : public ByInterval {
 public:
  explicit TruncationSelection(const spec::Sweep& sweep)
      : ByInterval(sweep),
        percentage_(static_cast<size_t>(sweep.early_termination.truncation_percentage)) {}

  void End(const ReportSeries&) override {}
  void Prepare(const ActiveReports&, const std::set<size_t>&) override {}

  std::string WhyStopped(const ReportSeries& reports, size_t interval) const override {
    const SortedValues& values = Reached(interval);
    const size_t worst = values.size() * percentage_ / 100;
    if (worst == 0) return "";
    // Ties with the best of the worst are spared if there are more of them than are to go.
    const double own = NumberAt(reports, interval);
    if (!(own < values[std::min(worst, values.size() - 1)])) return "";
    return absl::StrCat("its ", metric().Shown(own), " is among the worst ", worst, " of ",
                        values.size());
  }

 private:
  double NumberAt(const ReportSeries& reports, size_t count) const override {
    return metric().Turned(reports[count - 1]);
  }

  const size_t percentage_;
};

// Returns the rule of the sweep's policy; null if it has none.
std::unique_ptr<StoppingRule> MakeStoppingRule(const spec::Sweep& sweep) {
  switch (sweep.early_termination.kind) {
    case Kind::kBandit:
      return std::make_unique<Bandit>(sweep);
    case Kind::kMedianStopping:
      return std::make_unique<MedianStopping>(sweep);
    case Kind::kTruncationSelection:
      return std::make_unique<TruncationSelection>(sweep);
    case Kind::kNone:
      break;
  }
  return nullptr;
}

}  // namespace

void ReportSeries::Summary::Add(double value) {
  highest = std::max(highest, value);
  lowest = std::min(lowest, value);
  sum += value;
}

void ReportSeries::Append(const std::vector<double>& values) {
  for (const double value : values) {
    values_.push_back(value);
    all_.Add(value);
    if (values_.size() % kBlock == 0) blocks_.push_back(all_);
  }
}

ReportSeries::Summary ReportSeries::Of(size_t count) const {
  const size_t blocks = count / kBlock;
  Summary summary = blocks > 0 ? blocks_[blocks - 1] : Summary{};
  for (size_t i = blocks * kBlock; i < count; ++i) summary.Add(values_[i]);
  return summary;
}

StoppingPolicy::StoppingPolicy(const spec::Sweep& sweep)
    : policy_(sweep.early_termination), rule_(MakeStoppingRule(sweep)) {}

StoppingPolicy::~StoppingPolicy() = default;
StoppingPolicy::StoppingPolicy(StoppingPolicy&&) noexcept = default;

void StoppingPolicy::Report(int number, const std::vector<double>& values) {
  if (rule_ == nullptr || values.empty()) return;
  ReportSeries& reports = active_[number];
  const size_t known = reports.size();
  reports.Append(values);
  rule_->Report(reports, known);
}

void StoppingPolicy::Retract(int number) {
  auto gone = active_.extract(number);
  if (!gone.empty()) rule_->Retract(gone.mapped(), active_);
}

void StoppingPolicy::End(int number) {
  auto gone = active_.extract(number);
  if (!gone.empty()) rule_->End(gone.mapped());
}

size_t StoppingPolicy::LastInterval(const ReportSeries& reports) const {
  const size_t every = static_cast<size_t>(policy_.evaluation_interval);
  const size_t interval = reports.size() - reports.size() % every;
  return interval >= static_cast<size_t>(std::max(policy_.delay_evaluation, 1)) ? interval : 0;
}

std::vector<TrialStop> StoppingPolicy::TrialsToStop() const {
  std::set<size_t> intervals;
  for (const auto& [number, reports] : active_) intervals.insert(LastInterval(reports));
  intervals.erase(0);
  if (intervals.empty()) return {};
  rule_->Prepare(active_, intervals);
  std::vector<TrialStop> stops;
  for (const auto& [number, reports] : active_) {
    const size_t interval = LastInterval(reports);
    if (interval == 0) continue;
    const std::string why = rule_->WhyStopped(reports, interval);
    if (why.empty()) continue;
    stops.push_back({number, absl::StrCat("stopped early by ", Name(policy_.kind), " at report ",
                                          interval, ": ", why)});
  }
  return stops;
}

}  // namespace tutti::flow
