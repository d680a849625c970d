#include "platform/service/usage/usage_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace tutti::service {
namespace {

static_assert(std::endian::native == std::endian::little);

Merge MergeOf(size_t column) {
  if (column < kFirstGpuColumn) return kNodeColumns[column].merge;
  if (column < kNodeWidth) return kGpuColumns[column - kFirstGpuColumn].merge;
  return kRankColumns[(column - kNodeWidth) % kRankWidth].merge;
}

// A GPU that does not tell it counts as none.
float OfAllGpus(const std::vector<spec::GpuUsage>& gpus, const GpuColumn& column) {
  float all = spec::kUnknownUsage;
  for (const spec::GpuUsage& gpu : gpus) {
    const float value = gpu.*column.value;
    if (!std::isfinite(value)) continue;
    if (!std::isfinite(all)) {
      all = value;
    } else {
      all = column.of_all == Merge::kSum ? all + value : std::max(all, value);
    }
  }
  return all;
}

}  // namespace

void UsageTable::Add(int64_t time, absl::Span<const float> row) {
  if (times_.size() == times_.capacity()) {  // by less than the double
    const size_t rows = times_.size() + times_.size() / 8 + 16;
    times_.reserve(rows);
    values_.reserve(rows * width_);
  }
  times_.push_back(time);
  values_.insert(values_.end(), row.begin(), row.end());
}

void UsageTable::DropFirst(size_t rows) {
  constexpr size_t kPart = 16;
  gone_ += std::min(rows, size());
  if (gone_ * kPart < times_.size()) return;
  times_.erase(times_.begin(), times_.begin() + static_cast<ptrdiff_t>(gone_));
  values_.erase(values_.begin(), values_.begin() + static_cast<ptrdiff_t>(gone_ * width_));
  gone_ = 0;
}

void UsageTable::DropLast(size_t rows) {
  times_.resize(times_.size() - std::min(rows, size()));
  values_.resize(times_.size() * width_);
}

UsageTable UsageTable::MergedTo(size_t points) const {
  UsageTable merged(0);
  merged.width_ = width_;
  const size_t each = (size() + points - 1) / std::max<size_t>(points, 1);
  RowMerger merger(width_);
  for (size_t first = 0; first < size(); first += each) {
    for (size_t i = first; i < std::min(first + each, size()); ++i) merger.Add(row(i));
    merged.Add(time(first), merger.Row());
    merger.Clear();
  }
  return merged;
}

UsageTable UsageTable::Newest(size_t rows) const {
  UsageTable newest(0);
  newest.width_ = width_;
  for (size_t i = size() - std::min(rows, size()); i < size(); ++i) newest.Add(time(i), row(i));
  return newest;
}

std::string UsageTable::Bytes(size_t first) const {
  std::string bytes;
  bytes.reserve((size() - std::min(first, size())) * (sizeof(int64_t) + width_ * sizeof(float)));
  for (size_t i = first; i < size(); ++i) {
    bytes.append(reinterpret_cast<const char*>(&times_[gone_ + i]), sizeof(int64_t));
    bytes.append(reinterpret_cast<const char*>(row(i).data()), width_ * sizeof(float));
  }
  return bytes;
}

void UsageTable::AddBytes(absl::string_view bytes, bool has_gpus) {
  const size_t lacks = has_gpus ? 0 : std::size(kGpuColumns);
  const size_t row_bytes = sizeof(int64_t) + (width_ - lacks) * sizeof(float);
  std::vector<float> row(width_);
  for (; bytes.size() >= row_bytes; bytes.remove_prefix(row_bytes)) {
    int64_t time = 0;
    std::memcpy(&time, bytes.data(), sizeof time);
    std::memcpy(row.data(), bytes.data() + sizeof time, row_bytes - sizeof time);
    if (!has_gpus) {  // those of ranks move behind them
      const auto gpus = row.begin() + kFirstGpuColumn;
      std::rotate(gpus, row.end() - static_cast<ptrdiff_t>(lacks), row.end());
      std::fill_n(gpus, lacks, spec::kUnknownUsage);
    }
    if (size() == 0 || time > times_.back()) Add(time, row);
  }
}

void RowMerger::Add(absl::Span<const float> row) {
  ++rows_;
  const double weight = std::isfinite(row[kSamplesColumn]) ? row[kSamplesColumn] : 1;
  for (size_t i = 0; i < row.size(); ++i) {
    if (!std::isfinite(row[i])) continue;
    const double value = row[i];
    double& sum = sums_[i];
    switch (MergeOf(i)) {
      case Merge::kMean:
        sum += value * weight;
        break;
      case Merge::kSum:
        sum += value;
        break;
      case Merge::kMost:
        sum = weights_[i] == 0 ? value : std::max(sum, value);
        break;
      case Merge::kLeast:
        sum = weights_[i] == 0 ? value : std::min(sum, value);
        break;
    }
    weights_[i] += weight;
  }
}

std::vector<float> RowMerger::Row() const {
  std::vector<float> row(sums_.size(), spec::kUnknownUsage);
  for (size_t i = 0; i < row.size(); ++i) {
    if (weights_[i] == 0) continue;
    row[i] = static_cast<float>(MergeOf(i) == Merge::kMean ? sums_[i] / weights_[i] : sums_[i]);
  }
  return row;
}

void RowMerger::Clear() {
  std::fill(sums_.begin(), sums_.end(), 0);
  std::fill(weights_.begin(), weights_.end(), 0);
  rows_ = 0;
}

std::vector<float> RowOf(const spec::UsageSample& sample, int first_rank, int ranks) {
  std::vector<float> row(kNodeWidth + ranks * kRankWidth, spec::kUnknownUsage);
  for (size_t i = 0; i < kFirstGpuColumn; ++i) row[i] = sample.*kNodeColumns[i].value;
  for (size_t i = kFirstGpuColumn; i < kNodeWidth; ++i) {
    row[i] = OfAllGpus(sample.gpus, kGpuColumns[i - kFirstGpuColumn]);
  }
  for (const spec::RankUsage& rank : sample.ranks) {
    const int local = rank.rank - first_rank;
    if (local < 0 || local >= ranks) continue;
    for (size_t i = 0; i < kRankWidth; ++i) {
      row[kNodeWidth + local * kRankWidth + i] = rank.*kRankColumns[i].value;
    }
  }
  return row;
}

}  // namespace tutti::service
