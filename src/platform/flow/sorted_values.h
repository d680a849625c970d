// SortedValues holds numbers in ascending order, each as often as it was added. Not thread-safe.
#pragma once

#include <cstddef>
#include <vector>

namespace tutti::flow {

class SortedValues {
 public:
  // Adds values; one takes a search and a move of those above it, several take one pass over all.
  void Add(double value);
  void Add(const std::vector<double>& values);
  // Removes one that is equal to `value`; there is one.
  void Remove(double value);

  size_t size() const { return values_.size(); }
  double operator[](size_t i) const { return values_[i]; }  // in ascending order

 private:
  std::vector<double> values_;
};

// Returns the number with `rank` below it, from 0 on, of all that the two hold; there are more than
// that. Takes the logarithm of their sizes.
double Select(const SortedValues& a, const SortedValues& b, size_t rank);
// Returns the median of all that the two hold, which is something.
double Median(const SortedValues& a, const SortedValues& b);

}  // namespace tutti::flow
