#include "runtime/device/cpu/batch_norm/batch_norm_cpu.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "runtime/device/cpu/vector/lanes.h"

namespace tutti::device::cpu {
namespace {

enum class Mask { kNone, kFromX, kFromY };

template <Element T>
struct Sources {
  const T *x, *dy, *dy2, *y;
};

// For every channel, Known is what the sums of backward read, and Coefficients is what its second
// pass reads (dx = a dy + b x + c).
struct Known {
  const float *mean, *scale, *offset;
};
struct Coefficients {
  const float *a, *b, *c, *scale, *offset;
};

// One set of machine code: see batch_norm_kernels.inc.
template <Element T>
struct Passes {
  int64_t step;  // how many values they take at once, for LaneOf
  void (*statistics)(const T* x, int64_t rows, int64_t width, const float* shift, float* sum,
                     float* squares);
  void (*normalise)(const T* x, const T* residual, T* y, bool relu, int64_t rows, int64_t width,
                    const float* scale, const float* offset);
  void (*sums[3])(const Sources<T>& from, int64_t first, int64_t last, T* masked, int64_t width,
                  const Known& known, float* sum, float* product);
  void (*input_gradient[3])(const Sources<T>& from, int64_t first, int64_t last, T* dx,
                            int64_t width, const Coefficients& with);
};

#define TUTTI_KERNELS "runtime/device/cpu/batch_norm/batch_norm_kernels.inc"
#include "runtime/device/cpu/vector/for_each_instruction_set.inc"
#undef TUTTI_KERNELS

template <Element T>
const Passes<T>& Best() {
  static const Passes<T>& best = Choose(widest::kPasses<T>, wide::kPasses<T>, plain::kPasses<T>);
  return best;
}

// Rows taken together until they are whole vectors.
struct Folded {
  explicit Folded(const Activations& shape)
      : channels(shape.channels),
        times(kLanes / std::gcd(shape.channels, kLanes)),
        rows(shape.rows / times),
        width(shape.channels * times) {}
  int64_t channels, times, rows, width;
};

// Passes go in blocks of rows, small enough for their sums to be taken in fp32.
constexpr int64_t kBlockBytes = 128 << 10, kBlockRows = 1024;
// Less is not worth a second thread.
constexpr int64_t kPartBytes = 64 << 10;

enum class From { kBegin, kEnd };

class Blocks {
 public:
  Blocks(const Folded& folded, int64_t element_bytes, int threads)
      : rows_(folded.rows),
        rows_of_block_(
            std::clamp<int64_t>(kBlockBytes / (element_bytes * folded.width), 8, kBlockRows)),
        blocks_((rows_ + rows_of_block_ - 1) / rows_of_block_),
        parts_(std::clamp<int64_t>(element_bytes * rows_ * folded.width / kPartBytes, 1,
                                   std::min<int64_t>(threads, blocks_))) {}

  int64_t parts() const { return parts_; }

  // `body`(part, first row, last row) for every block; a part's are one thread's, in order.
  template <typename Body>
  void Each(From from, const Body& body) const {
    const int parts = static_cast<int>(parts_);
#pragma omp parallel for num_threads(parts) schedule(static, 1) if (parts > 1)
    for (int part = 0; part < parts; ++part) {
      const int64_t begin = blocks_ * part / parts, end = blocks_ * (part + 1) / parts;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t block = from == From::kBegin ? i : begin + end - 1 - i;
        const int64_t first = block * rows_of_block_;
        body(part, first, std::min(rows_, first + rows_of_block_));
      }
    }
  }

 private:
  int64_t rows_, rows_of_block_, blocks_, parts_;
};

// Two sums a channel: a block's in fp32, of which fp64 takes over what is there.
template <Element T>
class TwoSums {
 public:
  TwoSums(const Folded& folded, const Blocks& blocks)
      : folded_(folded),
        parts_(static_cast<size_t>(blocks.parts())),
        block_(parts_ * Stride()),
        total_(parts_ * Stride()) {}

  float* first(int part) { return block_.data() + static_cast<size_t>(part) * Stride(); }
  float* second(int part) { return first(part) + folded_.width; }
  void EndBlock(int part) {
    float* const block = first(part);
    double* const total = total_.data() + static_cast<size_t>(part) * Stride();
    for (size_t i = 0; i < Stride(); ++i) total[i] += static_cast<double>(block[i]);
    std::fill_n(block, Stride(), 0.0f);
  }

  // `which` is 0 or 1.
  double Of(int64_t channel, int which) const {
    double sum = 0;
    for (size_t part = 0; part < parts_; ++part) {
      const double* const from =
          total_.data() + part * Stride() + static_cast<size_t>(which * folded_.width);
      for (int64_t time = 0; time < folded_.times; ++time) {
        sum += from[LaneOf<T>(time * folded_.channels + channel, Best<T>().step)];
      }
    }
    return sum;
  }

 private:
  size_t Stride() const { return 2 * static_cast<size_t>(folded_.width); }

  const Folded& folded_;
  const size_t parts_;
  std::vector<float> block_;
  std::vector<double> total_;
};

// Vectors of channels, repeated to the width and in the order of lanes.
template <Element T>
class Vectors {
 public:
  Vectors(const Folded& folded, int count)
      : folded_(folded), values_(static_cast<size_t>(count * folded.width)) {}
  void Set(int which, int64_t channel, float value) {
    for (int64_t time = 0; time < folded_.times; ++time) {
      values_[static_cast<size_t>(which * folded_.width +
                                  LaneOf<T>(time * folded_.channels + channel, Best<T>().step))] =
          value;
    }
  }
  const float* of(int which) const { return values_.data() + which * folded_.width; }

 private:
  const Folded& folded_;
  std::vector<float> values_;
};

// One number is the sum's distance from the truth: with the channel's first value as the origin, a
// mean that is large beside the deviation costs no digits.
template <Element T>
Vectors<T> OriginsOf(const Folded& folded, const T* x) {
  Vectors<T> origins(folded, 1);
  for (int64_t c = 0; c < folded.channels; ++c) origins.Set(0, c, ToFloat(x[c]));
  return origins;
}

template <Element T>
TwoSums<T> StatisticsOf(const Folded& folded, const Blocks& blocks, const T* x,
                        const Vectors<T>& origins) {
  TwoSums<T> sums(folded, blocks);
  blocks.Each(From::kBegin, [&](int part, int64_t first, int64_t last) {
    Best<T>().statistics(x + first * folded.width, last - first, folded.width, origins.of(0),
                         sums.first(part), sums.second(part));
    sums.EndBlock(part);
  });
  return sums;
}

template <Element T>
void SetScaleAndOffset(const Normalisation& norm, int64_t c, Vectors<T>& to, int scale) {
  const float factor = norm.weight[c] * norm.inverse_deviation[c];
  to.Set(scale, c, factor);
  to.Set(scale + 1, c, norm.bias[c] - norm.mean[c] * factor);
}

}  // namespace

bool Takes(const Activations& shape) {
  return shape.rows > 0 && shape.channels > 0 && shape.channels <= 8192 &&
         shape.rows % (kLanes / std::gcd(shape.channels, kLanes)) == 0;
}

template <Element T>
void BatchNormForward(const Activations& shape, const T* x, const T* residual, T* y, bool relu,
                      const Normalisation& norm, int threads) {
  const Folded folded(shape);
  const Blocks blocks(folded, sizeof(T), threads);
  const Vectors<T> origins = OriginsOf(folded, x);
  const TwoSums<T> sums = StatisticsOf(folded, blocks, x, origins);
  const double n = static_cast<double>(shape.rows);
  Vectors<T> affine(folded, 2);
  for (int64_t c = 0; c < shape.channels; ++c) {
    const double from_origin = sums.Of(c, 0) / n;
    const double variance = std::max(sums.Of(c, 1) / n - from_origin * from_origin, 0.0);
    norm.mean[c] = static_cast<float>(static_cast<double>(ToFloat(x[c])) + from_origin);
    norm.inverse_deviation[c] =
        static_cast<float>(1 / std::sqrt(variance + static_cast<double>(norm.epsilon)));
    const auto unbiased = static_cast<float>(variance * (n / std::max(n - 1, 1.0)));
    norm.running_mean[c] += norm.momentum * (norm.mean[c] - norm.running_mean[c]);
    norm.running_var[c] += norm.momentum * (unbiased - norm.running_var[c]);
    SetScaleAndOffset(norm, c, affine, 0);
  }
  blocks.Each(From::kEnd, [&](int, int64_t first, int64_t last) {
    const int64_t at = first * folded.width;
    Best<T>().normalise(x + at, residual == nullptr ? nullptr : residual + at, y + at, relu,
                        last - first, folded.width, affine.of(0), affine.of(1));
  });
}

template <Element T>
void BatchNormBackward(const Activations& shape, const T* x, bool relu, const Normalisation& norm,
                       const Gradients<T>& g, int threads) {
  const Folded folded(shape);
  const Blocks blocks(folded, sizeof(T), threads);
  const Mask mask = !relu ? Mask::kNone : g.y != nullptr ? Mask::kFromY : Mask::kFromX;
  Vectors<T> known(folded, 6);  // mean, scale, offset; a, b, c
  for (int64_t c = 0; c < shape.channels; ++c) {
    known.Set(0, c, norm.mean[c]);
    SetScaleAndOffset(norm, c, known, 1);
  }
  const Sources<T> from = {x, g.dy, g.dy2, g.y};
  TwoSums<T> sums(folded, blocks);
  blocks.Each(From::kBegin, [&](int part, int64_t first, int64_t last) {
    Best<T>().sums[static_cast<size_t>(mask)](from, first, last, g.masked, folded.width,
                                              {known.of(0), known.of(1), known.of(2)},
                                              sums.first(part), sums.second(part));
    sums.EndBlock(part);
  });

  const double n = static_cast<double>(shape.rows);
  for (int64_t c = 0; c < shape.channels; ++c) {
    const double sum = sums.Of(c, 0), inverse = norm.inverse_deviation[c];
    const double of_weight = sums.Of(c, 1) * inverse;
    g.bias[c] = static_cast<float>(sum);
    g.weight[c] = static_cast<float>(of_weight);
    const double a = norm.weight[c] * inverse, b = -a * inverse * of_weight / n;
    known.Set(3, c, static_cast<float>(a));
    known.Set(4, c, static_cast<float>(b));
    known.Set(5, c, static_cast<float>(-a * sum / n - b * static_cast<double>(norm.mean[c])));
  }
  // Where the masked gradient was kept, it needs no mask any more.
  const bool kept = g.masked != nullptr;
  const Sources<T> second = {x, kept ? g.masked : g.dy, nullptr, g.y};
  const auto pass = Best<T>().input_gradient[static_cast<size_t>(kept ? Mask::kNone : mask)];
  blocks.Each(From::kEnd, [&](int, int64_t first, int64_t last) {
    pass(second, first, last, g.dx, folded.width,
         {known.of(3), known.of(4), known.of(5), known.of(1), known.of(2)});
  });
}

#define TUTTI_BATCH_NORM_OF(T)                                                              \
  template void BatchNormForward(const Activations&, const T*, const T*, T*, bool,          \
                                 const Normalisation&, int);                                \
  template void BatchNormBackward(const Activations&, const T*, bool, const Normalisation&, \
                                  const Gradients<T>&, int);
TUTTI_BATCH_NORM_OF(float)
TUTTI_BATCH_NORM_OF(uint16_t)
#undef TUTTI_BATCH_NORM_OF

}  // namespace tutti::device::cpu
