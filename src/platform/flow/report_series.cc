#include "platform/flow/report_series.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tutti::flow {
namespace {

constexpr size_t kBlock = 32;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

void ReportSeries::Summary::Add(double value) {
  highest = std::max(highest, value);
  lowest = std::min(lowest, value);
  sum += value;
}

ReportSeries::ReportSeries(std::vector<double> values) : values_(std::move(values)) {
  Summary so_far{-kInfinity, kInfinity, 0};
  for (size_t i = 0; i < values_.size(); ++i) {
    so_far.Add(values_[i]);
    if ((i + 1) % kBlock == 0) blocks_.push_back(so_far);
  }
}

ReportSeries::Summary ReportSeries::Of(size_t count) const {
  const size_t blocks = count / kBlock;
  Summary summary = blocks > 0 ? blocks_[blocks - 1] : Summary{-kInfinity, kInfinity, 0};
  for (size_t i = blocks * kBlock; i < count; ++i) summary.Add(values_[i]);
  return summary;
}

}  // namespace tutti::flow
