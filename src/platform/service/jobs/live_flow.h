// A pipeline or a sweep that has not ended, as the service holds it in memory. All of it follows
// from the store and from its children's logs, and is rebuilt from them.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "platform/flow/child.h"
#include "platform/flow/metric_reports.h"
#include "platform/flow/sampling.h"

namespace tutti::service {

class TrialMetrics;  // flow/trial_metrics.h

struct LiveChild {
  std::string id;  // of its job
  flow::Child child;
  // Of a trial: its values, and what it has reported so far.
  flow::Values values;
  flow::MetricReports reports;
  std::shared_ptr<TrialMetrics> metrics;  // reads them; a task's while `reading`
  bool reading = false;
  bool read_to_the_end = false;  // it has ended, and all that it reported is in `reports`
};

// What was found out about a step before its job is made.
struct StepPlan {
  bool ready = false;  // false: a task is at it
  std::string key;
  std::string reused_from;  // the job whose results are in the step's folder already; or empty
};

struct LiveFlow {
  enum class Results { kNone, kUnderWay, kThere };

  std::map<std::string, LiveChild> children;  // by step, of those that were started
  std::map<std::string, StepPlan> plans;      // by step, of those that are about to
  Results results = Results::kNone;
};

}  // namespace tutti::service
