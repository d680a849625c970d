// ReportSeries holds what a trial has reported of its sweep's metric, in order, and answers for its
// first n reports their highest, lowest and sum, in the same time however long the series is. Plain
// values.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <limits>
#include <vector>

namespace tutti::flow {

class ReportSeries {
 public:
  ReportSeries() = default;
  ReportSeries(std::initializer_list<double> values) : ReportSeries(std::vector<double>(values)) {}
  explicit ReportSeries(const std::vector<double>& values) { Append(values); }

  // Adds reports behind those that are there, in the time that these alone take.
  void Append(const std::vector<double>& values);

  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  double operator[](size_t i) const { return values_[i]; }

  // Return values of the first `count` reports; it is at least 1 and at most size().
  double Highest(size_t count) const { return Of(count).highest; }
  double Lowest(size_t count) const { return Of(count).lowest; }
  double Sum(size_t count) const { return Of(count).sum; }

 private:
  struct Summary {
    double highest = -std::numeric_limits<double>::infinity();
    double lowest = std::numeric_limits<double>::infinity();
    double sum = 0;
    void Add(double value);
  };
  Summary Of(size_t count) const;

  std::vector<double> values_;
  Summary all_;
  std::vector<Summary> blocks_;  // of the first kBlock reports, twice as many, …
};

}  // namespace tutti::flow
