// ChildStatus is a child of a pipeline or a sweep as users see it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "platform/service/jobs/job_status.h"

namespace tutti::service {

struct ChildStatus;

// The trials of a sweep, of which there may be very many, in short.
struct TrialSummary {
  std::map<store::JobState, int64_t> counts;  // of states in which any is
  std::vector<ChildStatus> best;    // those of the completed ones that have the best metrics
  std::vector<ChildStatus> failed;  // the first few
  std::string next;  // cursor of the trials behind those that are listed; empty: all are
};

// The children of a job: the steps of a pipeline in the order of its file; the first trials of a
// sweep, by number.
struct Children {
  std::vector<ChildStatus> list;
  std::optional<TrialSummary> trials;  // of a sweep
};

// A child of a pipeline or a sweep.
struct ChildStatus {
  std::string step;
  spec::JobKind kind = spec::JobKind::kCommand;
  // Its job; nothing before it was started. A trial's has no spec, nodes and failures: there may be
  // thousands of trials, whose own GET tells them.
  std::optional<JobStatus> job;
  bool never = false;       // nor will it be
  std::string reused_from;  // the job whose results it took; empty: it ran
  // For a trial: the values that it was given, by parameter; the best metric that it reported; and
  // whether it is the best trial of the sweep.
  std::vector<std::pair<std::string, std::string>> values;
  std::optional<double> metric;
  bool best = false;
  Children children;
};

// Which trials of a sweep are asked for, and how many.
struct TrialQuery {
  std::vector<store::JobState> states;  // empty: all; of no meaning for kBest
  store::TrialFilter::Order order = store::TrialFilter::Order::kNumber;
  int limit = 100;
  std::string after;  // a page's cursor, of the same order; empty: from the first on
};

struct TrialPage {
  std::vector<ChildStatus> trials;
  std::string next;  // cursor of the trials behind these; empty: there are none
};

}  // namespace tutti::service
