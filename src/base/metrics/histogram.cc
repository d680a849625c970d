#include "base/metrics/histogram.h"

#include <algorithm>

namespace tutti::base {

void Histogram::Add(absl::Duration time) {
  time = std::max(time, absl::ZeroDuration());
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), time);
  ++counts_[static_cast<size_t>(bound - bounds_.begin())];
  sum_ += time;
}

}  // namespace tutti::base
