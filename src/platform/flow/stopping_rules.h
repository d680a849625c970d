// StoppingRule is one of the policies of early_termination.h: what it keeps of all trials' reports,
// and how it judges one. Not thread-safe.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "platform/flow/early_termination.h"

namespace tutti::flow {

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

// Returns the sweep's, null if it has none.
std::unique_ptr<StoppingRule> MakeStoppingRule(const spec::Sweep& sweep);

}  // namespace tutti::flow
