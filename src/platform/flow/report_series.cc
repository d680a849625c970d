#include "platform/flow/report_series.h"

#include <algorithm>

namespace tutti::flow {
namespace {

constexpr size_t kBlock = 32;

}  // namespace

void ReportSeries::Summary::Add(double value) {
  highest = std::max(highest, value);
  lowest = std::min(lowest, value);
  sum += value;
}

void ReportSeries::Append(const std::vector<double>& values) {
  for (const double value : values) {
    values_.push_back(value);
    all_.Add(value);
    if (values_.size() % kBlock == 0) blocks_.push_back(all_);
  }
}

ReportSeries::Summary ReportSeries::Of(size_t count) const {
  const size_t blocks = count / kBlock;
  Summary summary = blocks > 0 ? blocks_[blocks - 1] : Summary{};
  for (size_t i = blocks * kBlock; i < count; ++i) summary.Add(values_[i]);
  return summary;
}

}  // namespace tutti::flow
