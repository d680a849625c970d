// LiveFlow is a pipeline or a sweep that has not ended, as the service holds it in memory. All of
// it follows from the store and from its children's logs, and is rebuilt from them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "platform/flow/sweep_trials.h"
#include "platform/store/store.h"

namespace tutti::service {

class TrialMetrics;  // flow/trial_metrics.h

struct LiveChild {
  std::string id;  // of its job
  flow::Child child;
  int64_t last_event = 0;  // by which `child` is as it is
  // Set for a trial that has not ended, or whose metrics are still being read to their end.
  std::shared_ptr<TrialMetrics> metrics;  // a task's while `reading`
  bool reading = false;
  std::optional<store::Event> end;  // of one that has ended
  bool noted = false;               // what the trial has reported is in the store
};

// Says what was found out about a step before its job is made.
struct StepPlan {
  bool ready = false;  // false: a task is at it
  std::string key;
  std::string reused_from;  // the job whose results are in the step's folder already; or empty
};

// Values that a task has proposed for the trials of a sweep that come next.
struct Proposals {
  bool under_way = false;            // a task is at it
  int first = 0;                     // the number of the trial that the first of them are for
  std::vector<flow::Values> values;  // of one after the other
};

struct LiveFlow {
  enum class Results { kNone, kUnderWay, kThere };

  std::map<std::string, LiveChild> children;  // by step, of those that were started
  std::set<std::string> active;               // steps of those that are looked at at each tick
  std::unique_ptr<flow::SweepTrials> trials;  // of a sweep
  Proposals proposals;                        // where its sampling learns
  // Since the last decision something has that it goes by.
  bool changed = true;
  std::map<std::string, StepPlan> plans;  // by step, of those that are about to
  Results results = Results::kNone;
};

}  // namespace tutti::service
