// Histogram counts how many of some times were at most so long, for who watches a program.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace tutti::base {

class Histogram {
 public:
  // `bounds` ascend, and outlive all copies.
  explicit Histogram(absl::Span<const absl::Duration> bounds)
      : bounds_(bounds), counts_(bounds.size() + 1) {}

  // Adds a time; one below zero, as of a clock that was set back, is none.
  void Add(absl::Duration time);

  absl::Span<const absl::Duration> bounds() const { return bounds_; }
  // Returns how many were longer than the bound before, and at most as long as this one; behind
  // them those that were longer than all bounds.
  const std::vector<int64_t>& counts() const { return counts_; }
  absl::Duration sum() const { return sum_; }

 private:
  absl::Span<const absl::Duration> bounds_;
  std::vector<int64_t> counts_;
  absl::Duration sum_;
};

}  // namespace tutti::base
