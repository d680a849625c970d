// RandomStream gives the random numbers that belong to one (seed, purpose, epoch, sample): the same
// on every rank, on every thread and after every restart. Streams of different arguments do not
// overlap: all four are part of Philox's counter or key. Not thread-safe; cheap to make and to
// copy.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/data/sampling/philox.h"

namespace tutti::data {

class RandomStream {
 public:
  enum class Purpose : uint8_t { kPermutation = 1, kAugmentation = 2, kMixing = 3, kFlipping = 4 };

  // `epoch` below 2^32 (0 of what holds for all), `sample` (of a mixture: the step) below 2^56.
  RandomStream(uint64_t seed, Purpose purpose, int64_t epoch, int64_t sample);

  uint32_t Next32();
  uint64_t Next64();
  // Returns a number uniform on {0, …, n - 1}, without bias (Lemire, "Fast Random Integer
  // Generation in an Interval", ACM TOMACS 2019). n > 0.
  uint64_t Below(uint64_t n);
  // Returns a number uniform on [low, high), in steps of 2^-53 of the range.
  double Uniform(double low, double high);
  bool Coin() { return (Next32() >> 31) != 0; }

 private:
  PhiloxKey key_;
  PhiloxCounter counter_;
  PhiloxCounter block_{};
  int used_ = 4;  // words of block_ that are spent
};

}  // namespace tutti::data
