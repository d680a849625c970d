// Parses a line of a job's metrics (docs/formats/metrics.md), as far as a follower shows it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::client {

// Which fields mean something depends on the event; numbers that the line lacks are nullopt.
struct Metric {
  enum class Event { kStart, kStep, kEvaluation, kCheckpoint, kResult };
  Event event = Event::kStep;
  std::string model, path, precision;
  std::optional<int64_t> epoch, epochs, step, steps, images, train_images, parameters, world_size,
      global_batch, bytes;
  std::optional<double> loss, images_per_second, seconds_left, seconds;
  std::vector<std::pair<std::string, double>> scores;  // "top-1": 0.612, in the order shown
};

// Parses a metric; nullopt for what is no metric of a known event: programs may write what they
// like.
std::optional<Metric> ParseMetric(absl::string_view json);

// Returns what a metric other than a step says, on one line: "epoch 3: top-1 61.20 % …".
std::string MetricLine(const Metric& metric);

}  // namespace tutti::client
