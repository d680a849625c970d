// Counts what a server of models does, for Prometheus: docs/serving/README.md has the table.
// Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/metrics/histogram.h"
#include "base/metrics/prometheus_text.h"

namespace tutti::scoring {

// Outcome is how a request for a model ended.
enum class Outcome { kAnswered, kWrongInput, kTooLate, kClientGone, kFailed };
inline constexpr size_t kOutcomes = 5;

// What a request took, from its arrival.
struct RequestTimes {
  absl::Duration total;
  absl::Duration queued;  // until its first image was computed, decoding included
};

// Counters of one version of a model.
class ModelCounters {
 public:
  ModelCounters();
  void AddRequest(Outcome outcome, size_t images, const RequestTimes& times);
  void AddBatch(size_t images, absl::Duration time);

 private:
  friend std::string MetricsText(std::span<const struct ModelMetrics> models,
                                 const std::map<int, int64_t>& answers, int64_t lost_lines,
                                 base::PrometheusText::Format format);
  mutable absl::Mutex mutex_;
  std::array<int64_t, kOutcomes> requests_ ABSL_GUARDED_BY(mutex_) = {};
  int64_t images_ ABSL_GUARDED_BY(mutex_) = 0;
  base::Histogram total_ ABSL_GUARDED_BY(mutex_), queued_ ABSL_GUARDED_BY(mutex_),
      batch_ ABSL_GUARDED_BY(mutex_);
  base::Histogram sizes_ ABSL_GUARDED_BY(mutex_);  // of batches, an image being a second
};

struct ModelMetrics {
  std::string name, version;
  const ModelCounters* counters = nullptr;
  size_t waiting = 0;  // images that wait or are being computed
};

// `answers`: how many there were by HTTP status, of all paths.
std::string MetricsText(std::span<const ModelMetrics> models, const std::map<int, int64_t>& answers,
                        int64_t lost_lines, base::PrometheusText::Format format);

}  // namespace tutti::scoring
