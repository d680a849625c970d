#include "runtime/device/memory_speed.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>

namespace tutti::device {
namespace {

constexpr int64_t kValues = int64_t{32} << 20;  // of 4 bytes, an array
constexpr int64_t kGrain = int64_t{1} << 16;
constexpr int kTriads = 5;

struct Arrays {
  // Not cleared: the thread that writes a page first has it in its own memory.
  std::unique_ptr<float[]> a = std::make_unique_for_overwrite<float[]>(kValues);
  std::unique_ptr<float[]> b = std::make_unique_for_overwrite<float[]>(kValues);
  std::unique_ptr<float[]> c = std::make_unique_for_overwrite<float[]>(kValues);
};

void Fill(Arrays& of) {
  at::parallel_for(0, kValues, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      of.a[i] = 0;
      of.b[i] = 1;
      of.c[i] = 2;
    }
  });
}

void Triad(Arrays& of) {
  at::parallel_for(0, kValues, kGrain, [&](int64_t begin, int64_t end) {
    float* __restrict const a = of.a.get();
    const float *const b = of.b.get(), *const c = of.c.get();
    for (int64_t i = begin; i < end; ++i) a[i] = b[i] + 3 * c[i];
  });
}

}  // namespace

double MeasureMemorySpeed() {
  using Clock = std::chrono::steady_clock;
  Arrays arrays;
  Fill(arrays);
  double least = std::numeric_limits<double>::max();
  for (int round = 0; round < kTriads; ++round) {
    const auto began = Clock::now();
    Triad(arrays);
    least = std::min(least, std::chrono::duration<double>(Clock::now() - began).count());
  }
  return 3.0 * kValues * sizeof(float) / least;
}

}  // namespace tutti::device
