#include "runtime/data/augment/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tutti::data {
namespace {

// One pixel of four floats; compilers know it as one register.
typedef float Pixel __attribute__((vector_size(16), aligned(4)));

// to[i] = sum over k of weights[k] * (from + k * stride)[i], added in the order of k. A block of
// sums stays in registers or the nearest cache while the rows go by.
[[gnu::always_inline]] inline void SumRows(const uint8_t* from, size_t stride, const float* weights,
                                           int rows, size_t count, float* to) {
  constexpr size_t kBlock = 1024;
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t end = std::min(count, begin + kBlock);
    for (size_t i = begin; i < end; ++i) to[i] = weights[0] * static_cast<float>(from[i]);
    for (int k = 1; k < rows; ++k) {
      const uint8_t* row = from + static_cast<size_t>(k) * stride;
      const float weight = weights[k];
      for (size_t i = begin; i < end; ++i) to[i] += weight * static_cast<float>(row[i]);
    }
  }
}

using SumRowsFunction = void (*)(const uint8_t*, size_t, const float*, int, size_t, float*);

void SumRowsBaseline(const uint8_t* from, size_t stride, const float* weights, int rows,
                     size_t count, float* to) {
  SumRows(from, stride, weights, rows, count, to);
}

#if defined(__x86_64__)
// The same operations in wider registers: the same bits.
[[gnu::target("avx2")]] void SumRowsAvx2(const uint8_t* from, size_t stride, const float* weights,
                                         int rows, size_t count, float* to) {
  SumRows(from, stride, weights, rows, count, to);
}
#endif

SumRowsFunction BestSumRows() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return SumRowsAvx2;
#endif
  return SumRowsBaseline;
}

}  // namespace

void AxisTaps::Compute(const Axis& axis, int limit) {
  taps.clear();
  weights.clear();
  const double scale = axis.extent / axis.full;
  const double support = std::max(scale, 1.0);
  // The crop comes before the resize: what lies outside of it has no weight.
  const int low = std::max(0, static_cast<int>(std::floor(axis.begin)));
  const int high = std::min(limit, static_cast<int>(std::ceil(axis.begin + axis.extent)));
  begin = limit;
  end = 0;
  for (int i = axis.first; i < axis.first + axis.count; ++i) {
    const double center = axis.begin + (i + 0.5) * scale;
    const int first = std::clamp(static_cast<int>(center - support + 0.5), low, high - 1);
    const int last = std::clamp(static_cast<int>(center + support + 0.5), first + 1, high);
    taps.push_back({first, last - first, weights.size()});
    double sum = 0;
    for (int k = first; k < last; ++k) {
      const double weight = std::max(0.0, 1 - std::abs((k + 0.5 - center) / support));
      weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (size_t k = taps.back().offset; k < weights.size(); ++k) {
      weights[k] = sum > 0 ? static_cast<float>(weights[k] / sum) : 1.0f / float(last - first);
    }
    begin = std::min(begin, first);
    end = std::max(end, last);
  }
}

void Resampler::Prepare(const Axis& x, const Axis& y, ImageSize source) {
  x_.Compute(x, source.width);
  y_.Compute(y, source.height);
  line_.resize(static_cast<size_t>(x_.end - x_.begin) * 4);
  row_.resize(x_.taps.size() * 4);
}

Region Resampler::needed() const {
  return {x_.begin, y_.begin, x_.end - x_.begin, y_.end - y_.begin};
}

// Rows first: this pass touches every source pixel, and runs over whole rows in vectors.
void Resampler::FilterRows(const ImageView& source, int left, int top, const Taps& taps) {
  static const SumRowsFunction sum_rows = BestSumRows();
  const uint8_t* from = source.row(taps.first - top) + (x_.begin - left) * kBytesPerPixel;
  sum_rows(from, static_cast<size_t>(source.width) * kBytesPerPixel,
           y_.weights.data() + taps.offset, taps.count, line_.size(), line_.data());
}

void Resampler::FilterColumns(bool flip) {
  const size_t width = x_.taps.size();
  for (size_t i = 0; i < width; ++i) {
    const Taps& taps = x_.taps[i];
    const float* from = line_.data() + (taps.first - x_.begin) * 4;
    const float* weight = x_.weights.data() + taps.offset;
    Pixel sum = {0, 0, 0, 0};
    for (int k = 0; k < taps.count; ++k, from += 4) {
      sum += *weight++ * *reinterpret_cast<const Pixel*>(from);
    }
    *reinterpret_cast<Pixel*>(row_.data() + 4 * (flip ? width - 1 - i : i)) = sum;
  }
}

void Resampler::Run(const ImageView& source, int left, int top, bool flip,
                    const Normalizer& normalizer, void* out) {
  const int width = static_cast<int>(x_.taps.size());
  char* to = static_cast<char*>(out);
  for (const Taps& taps : y_.taps) {
    FilterRows(source, left, top, taps);
    FilterColumns(flip);
    normalizer.StoreRow(row_.data(), width, to);
    to += static_cast<size_t>(width) * 3 * BytesOf(normalizer.type());
  }
}

}  // namespace tutti::data
