#include "platform/flow/sorted_values.h"

#include <algorithm>

namespace tutti::flow {

void SortedValues::Add(double value) {
  values_.insert(std::upper_bound(values_.begin(), values_.end(), value), value);
}

void SortedValues::Add(const std::vector<double>& values) {
  if (values.size() == 1) return Add(values.front());
  const auto before = static_cast<std::ptrdiff_t>(values_.size());
  values_.insert(values_.end(), values.begin(), values.end());
  std::sort(values_.begin() + before, values_.end());
  std::inplace_merge(values_.begin(), values_.begin() + before, values_.end());
}

void SortedValues::Remove(double value) {
  values_.erase(std::lower_bound(values_.begin(), values_.end(), value));
}

// The `rank` least ones are the first i of `a` and the first rank - i of `b`, for the least i of
// which the next of `a` is not below one of those of `b`.
double Select(const SortedValues& a, const SortedValues& b, size_t rank) {
  size_t low = rank - std::min(rank, b.size());
  size_t high = std::min(rank, a.size());
  while (low < high) {
    const size_t i = low + (high - low) / 2;  // below a.size(), and below rank
    if (b[rank - i - 1] <= a[i]) {
      high = i;
    } else {
      low = i + 1;
    }
  }
  const size_t j = rank - low;
  if (low == a.size()) return b[j];
  return j == b.size() ? a[low] : std::min(a[low], b[j]);
}

double Median(const SortedValues& a, const SortedValues& b) {
  const size_t count = a.size() + b.size();
  const double upper = Select(a, b, count / 2);
  return count % 2 == 1 ? upper : (Select(a, b, count / 2 - 1) + upper) / 2;
}

}  // namespace tutti::flow
