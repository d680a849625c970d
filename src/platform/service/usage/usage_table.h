// UsageTable has what the processes of a node used over time, a row for each moment or span: first
// the node's columns, with those of the job's GPUs there, then those of each of its ranks. Plain
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "spec/json/usage_sample.h"

namespace tutti::service {

// How rows become one.
enum class Merge { kMean, kMost, kLeast, kSum };

template <class Usage>
struct UsageColumn {
  const char* name;
  float Usage::*value;
  Merge merge;
};

// The order in rows, and in files: who changes it changes the version of those (node_history.cc).
inline constexpr UsageColumn<spec::UsageSample> kNodeColumns[] = {
    {"cpu", &spec::UsageSample::cpu, Merge::kMean},
    {"memory", &spec::UsageSample::memory, Merge::kMost},
    {"memory_left", &spec::UsageSample::memory_left, Merge::kLeast},
    {"disk_read", &spec::UsageSample::disk_read, Merge::kMean},
    {"disk_write", &spec::UsageSample::disk_write, Merge::kMean},
    {"machine_cpu", &spec::UsageSample::machine_cpu, Merge::kMean},
    {"net_receive", &spec::UsageSample::net_receive, Merge::kMean},
    {"net_send", &spec::UsageSample::net_send, Merge::kMean},
    {"samples", &spec::UsageSample::samples, Merge::kSum},
};
inline constexpr UsageColumn<spec::RankUsage> kRankColumns[] = {
    {"cpu", &spec::RankUsage::cpu, Merge::kMean},
    {"memory", &spec::RankUsage::memory, Merge::kMost},
    {"disk_read", &spec::RankUsage::disk_read, Merge::kMean},
    {"disk_write", &spec::RankUsage::disk_write, Merge::kMean},
    {"cpu_wait", &spec::RankUsage::cpu_wait, Merge::kMean},
};
// What the job's GPUs on the node do together.
struct GpuColumn {
  const char* name;
  float spec::GpuUsage::*value;
  Merge of_all;  // how GPUs become one value
  Merge merge;   // how rows do
};
inline constexpr GpuColumn kGpuColumns[] = {
    {"gpu_use", &spec::GpuUsage::use, Merge::kSum, Merge::kMean},  // in GPUs
    {"gpu_memory", &spec::GpuUsage::memory, Merge::kSum, Merge::kMost},
    {"gpu_memory_total", &spec::GpuUsage::memory_total, Merge::kSum, Merge::kMost},
    {"gpu_power", &spec::GpuUsage::power, Merge::kSum, Merge::kMean},
    {"gpu_temperature", &spec::GpuUsage::temperature, Merge::kMost, Merge::kMost},
};
inline constexpr size_t kCpuColumn = 0, kMemoryColumn = 1, kMemoryLeftColumn = 2;  // of a node
inline constexpr size_t kRankMemoryColumn = 1, kRankCpuWaitColumn = 4;
inline constexpr size_t kSamplesColumn = 8;
inline constexpr size_t kFirstGpuColumn = std::size(kNodeColumns);
inline constexpr size_t kGpuUseColumn = kFirstGpuColumn, kGpuMemoryColumn = kFirstGpuColumn + 1;
inline constexpr size_t kNodeWidth = kFirstGpuColumn + std::size(kGpuColumns);
inline constexpr size_t kRankWidth = std::size(kRankColumns);

class UsageTable {
 public:
  explicit UsageTable(int ranks) : width_(kNodeWidth + ranks * kRankWidth) {}

  size_t width() const { return width_; }
  size_t size() const { return times_.size() - gone_; }
  int64_t time(size_t row) const { return times_[gone_ + row]; }  // milliseconds since 1970
  absl::Span<const float> row(size_t row) const {
    return {&values_[(gone_ + row) * width_], width_};
  }
  float at(size_t row, size_t column) const { return values_[(gone_ + row) * width_ + column]; }

  // Adds a row of width() values; times go up.
  void Add(int64_t time, absl::Span<const float> row);
  void DropFirst(size_t rows);
  void DropLast(size_t rows);
  // Returns a table of at most `points` rows, each of as many of these, one after another.
  UsageTable MergedTo(size_t points) const;
  // Returns the newest rows.
  UsageTable Newest(size_t rows) const;

  // Returns rows from `first` on as bytes: each its time and its values, little-endian.
  std::string Bytes(size_t first) const;
  // Adds rows from such bytes; a part of a row at their end is left out, and rows whose times do
  // not go up. `has_gpus`: they have the columns of GPUs, which files of version 1 lack.
  void AddBytes(absl::string_view bytes, bool has_gpus = true);

 private:
  size_t width_;
  size_t gone_ = 0;  // of the first rows, which are moved over now and then
  std::vector<int64_t> times_;
  std::vector<float> values_;
};

// Merges rows to one, each by the number of samples that it stands for. Values that are not known
// do not count.
class RowMerger {
 public:
  explicit RowMerger(size_t width) : sums_(width), weights_(width) {}
  void Add(absl::Span<const float> row);
  bool empty() const { return rows_ == 0; }
  std::vector<float> Row() const;
  void Clear();

 private:
  std::vector<double> sums_, weights_;
  int rows_ = 0;
};

// Returns the row of a sample; ranks of another node are left out.
std::vector<float> RowOf(const spec::UsageSample& sample, int first_rank, int ranks);

}  // namespace tutti::service
