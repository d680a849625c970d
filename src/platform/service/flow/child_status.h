// ChildStatus is a child of a pipeline or a sweep as users see it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "platform/service/jobs/job_status.h"

namespace tutti::service {

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
  std::vector<ChildStatus> children;
};

}  // namespace tutti::service
