// Point is one measured point of a benchmark, with what explains it. Plain data.
#pragma once

#include <string>
#include <vector>

#include "runtime/bench/step_model.h"
#include "runtime/train/report/meter.h"

namespace tutti::bench {

struct Point {
  std::string model, transport;
  int ranks = 1;
  int64_t batch = 0;       // images per step and rank
  train::StepParts parts;  // of rank 0, in the step of median length; seconds
  Link link;
  Prediction predicted;  // all 0: no model, as of several ranks on GPUs
  double alone = 0;      // images/s of one rank

  double images_per_second() const { return PerSecond(parts.Sum()); }
  double ideal() const { return alone * ranks; }
  bool is_explained() const { return predicted.step() > 0; }
  double efficiency() const { return images_per_second() / ideal(); }
  // Returns what the model of the step allows.
  double predicted_images_per_second() const { return PerSecond(predicted.step()); }

 private:
  double PerSecond(double step) const {
    return step > 0 ? static_cast<double>(ranks * batch) / step : 0;
  }
};

// What the points have in common.
struct Conditions {
  std::string precision = "fp32", device = "cpu";
  int threads = 1, cores = 1;  // per rank; per node
  int nodes = 1;
  std::string date;  // "2026-11-20"
};

}  // namespace tutti::bench
