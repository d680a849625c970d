// Metric is one number by which a task says how good a model is. Plain data, no libtorch.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::tasks {

struct Metric {
  std::string name;   // "top1", of metrics files
  std::string title;  // "top-1", for people
  double value = 0;   // 0..1, 1 is best
};

// Returns the value of the metric of that name; 0 if there is none.
inline double Value(const std::vector<Metric>& metrics, absl::string_view name) {
  for (const Metric& metric : metrics) {
    if (metric.name == name) return metric.value;
  }
  return 0;
}

}  // namespace tutti::tasks
