// Tuner finds the fusion threshold and the cycle time with which the most bytes a second are
// reduced (autotuning). Pure: time and bytes are parameters.
//
// It is a coordinate search over powers of two. From the best setting so far it steps up and down
// in one of the two, then in the other; a step that is better by more than kGain becomes the best
// and is taken again. The best is measured anew beside each candidate, since what the training does
// drifts. It ends when no step from the best helps, and says so; then the best stays.
//
// A setting is measured as the median of several windows of time; the first window after a change
// does not count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace tutti::comm {

struct Tuning {
  size_t fusion_bytes = 64 << 20;
  absl::Duration cycle_time = absl::Milliseconds(1);
  bool operator==(const Tuning&) const = default;
};

class Tuner {
 public:
  struct Options {
    absl::Duration window = absl::Milliseconds(500);
    int windows = 3;  // to a measurement
  };
  Tuner(const Options& options, const Tuning& start);

  // Returns the setting to be taken from now on, when it changes. `bytes`: how many were reduced.
  std::optional<Tuning> OnProgress(uint64_t bytes, absl::Duration now);
  bool done() const { return done_; }
  Tuning best() const { return At(best_); }
  // Returns the lines of CSV since the last call: fusion bytes, cycle time in ms, bytes a second,
  // what came of it.
  std::string TakeLog() { return std::exchange(log_, ""); }

  static constexpr double kGain = 1.03;

 private:
  struct Point {
    int fusion;
    int cycle;
    bool operator==(const Point&) const = default;
  };
  static Tuning At(Point point);
  std::optional<Point> Step(int move) const;
  std::optional<Tuning> OnMeasured(double rate);
  std::optional<Tuning> NextCandidate();
  std::optional<Tuning> Change(Point to);
  void Log(Point point, double rate, const char* what);

  const Options options_;
  Point best_;
  Point current_;
  int move_ = 0;       // of four: fusion up, down, cycle up, down
  int fruitless_ = 0;  // moves since the last that helped
  double best_rate_ = 0;
  bool done_ = false;
  bool settled_ = false;  // the window after the last change is over
  std::optional<absl::Duration> window_start_;
  uint64_t window_bytes_ = 0;
  std::vector<double> rates_;
  std::string log_;
};

}  // namespace tutti::comm
