// RunningBest holds the best of the first n reports of several series, for each n: the greatest.
// A number is kept where the best changes, so that what never was the best takes no room. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <iterator>
#include <limits>
#include <map>

namespace tutti::flow {

class RunningBest {
 public:
  // Takes report number `n`, from 1 on, of one of the series.
  void Add(size_t n, double value) {
    auto next = best_.upper_bound(n);
    if (next != best_.begin() && std::prev(next)->second >= value) return;
    while (next != best_.end() && next->second <= value) next = best_.erase(next);
    best_[n] = value;
  }
  // Returns the best of the first n of all; minus infinity: there is none.
  double Until(size_t n) const {
    const auto next = best_.upper_bound(n);
    return next == best_.begin() ? -std::numeric_limits<double>::infinity()
                                 : std::prev(next)->second;
  }

 private:
  std::map<size_t, double> best_;  // by the report that made it so; both ascend
};

}  // namespace tutti::flow
