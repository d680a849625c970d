// Progress prints a run for people: a bar on a terminal, plain lines in a log. Thread-compatible.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "runtime/train/report/meter.h"

namespace tutti::train {

struct Position {
  int64_t epoch = 0, epochs = 0;  // from 1
  int64_t step = 0, steps = 0;    // from 1, over all epochs
  double learning_rate = 0;
  double seconds_left = 0;
};

// Returns "epoch  3/18  step  120/702  loss 1.4321  lr 0.0875  1502 images/s  35 s left"
std::string DescribeStep(const Position& position, const Interval& interval);
// Returns "12 s", "3 min 20 s", "2 h 5 min".
std::string DescribeSeconds(double seconds);
// Returns 24 columns of a bar, `part` (0..1) of them filled.
std::string DrawBar(double part);

class Progress {
 public:
  // `out` null: says nothing (ranks other than 0). When it is no terminal, a line `line_every`.
  Progress(std::FILE* out, bool terminal, absl::Duration line_every, const base::Clock& clock);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Step(const Position& position, const Interval& interval);
  // Prints a line that stays, above the bar.
  void Line(absl::string_view text);

 private:
  void ClearBar();

  std::FILE* const out_;
  const bool terminal_;
  const absl::Duration line_every_;
  const base::Clock& clock_;
  absl::Time next_line_;
  bool bar_shown_ = false;
};

}  // namespace tutti::train
