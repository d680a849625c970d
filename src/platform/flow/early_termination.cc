#include "platform/flow/early_termination.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "platform/flow/stopping_rules.h"
#include "spec/types/enum_names.h"

namespace tutti::flow {

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
