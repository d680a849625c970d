// LapTimer measures the parts of a whole in a row, so that they add up to it. Thread-compatible.
#pragma once

#include <chrono>

namespace tutti::parallel {

class LapTimer {
 public:
  // Returns the seconds since the last call, or since the timer was made.
  double Lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - since_).count();
    since_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace tutti::parallel
