#include "runtime/data/augment/taps.h"

#include <algorithm>
#include <cmath>

namespace tutti::data {

void AxisTaps::Compute(const Axis& axis, int limit) {
  const double scale = axis.extent / axis.full;
  const double support = std::max(scale, 1.0);
  // The crop comes before the resize: what lies outside of it has no weight.
  const int low = std::max(0, static_cast<int>(std::floor(axis.begin)));
  const int high = std::min(limit, static_cast<int>(std::ceil(axis.begin + axis.extent)));
  const auto outputs = static_cast<size_t>(axis.count);
  // So many pixels at most lie under a triangle, those at its very ends left out.
  count = std::min(high - low, static_cast<int>(std::ceil(2 * support)));
  first.resize(outputs);
  weights.resize(outputs * static_cast<size_t>(count));
  float* to = weights.data();
  for (size_t i = 0; i < outputs; ++i, to += count) {
    const double center = axis.begin + (axis.first + static_cast<double>(i) + 0.5) * scale;
    const int begins = static_cast<int>(std::max(0.0, center - support + 0.5));
    first[i] = std::clamp(begins, low, high - count);
    double sum = 0;
    for (int k = 0; k < count; ++k) {
      const double weight = std::max(0.0, 1 - std::abs((first[i] + k + 0.5 - center) / support));
      to[k] = static_cast<float>(weight);
      sum += weight;
    }
    const auto share = static_cast<float>(1 / sum);
    for (int k = 0; k < count; ++k) to[k] = sum > 0 ? to[k] * share : 1.0f / float(count);
  }
  begin = *std::min_element(first.begin(), first.end());
  end = *std::max_element(first.begin(), first.end()) + count;
}

void AxisTaps::ComputeOfPlane(const AxisTaps& pixels, int ratio, int limit) {
  const auto inside = [limit](int sample) { return std::clamp(sample, 0, limit - 1); };
  const int reach = ratio == 2 ? 1 : 0;  // a triangle looks at half a sample more on either side
  count = std::min(limit, (pixels.count + 2 * reach + 2 * ratio - 2) / ratio);
  first.resize(pixels.size());
  weights.assign(pixels.size() * static_cast<size_t>(count), 0);
  for (size_t i = 0; i < pixels.size(); ++i) {
    first[i] = std::clamp((pixels.first[i] - reach) / ratio, 0, limit - count);
    float* const to = weights.data() + i * static_cast<size_t>(count);
    const float* const from = pixels.weights.data() + i * static_cast<size_t>(pixels.count);
    for (int k = 0; k < pixels.count; ++k) {
      const int pixel = pixels.first[i] + k, near = pixel / ratio;
      if (ratio == 2) {
        const int far = pixel % 2 == 0 ? near - 1 : near + 1;
        to[inside(near) - first[i]] += 0.75f * from[k];
        to[inside(far) - first[i]] += 0.25f * from[k];
      } else {
        to[inside(near) - first[i]] += from[k];
      }
    }
  }
  begin = *std::min_element(first.begin(), first.end());
  end = *std::max_element(first.begin(), first.end()) + count;
}

void PairTaps::Compute(const AxisTaps& taps, bool on_grid) {
  const auto one = static_cast<float>(kOne);
  count = (taps.count + (on_grid ? 2 : 1)) / 2;
  first.resize(taps.size());
  weights.assign(taps.size() * static_cast<size_t>(count), 0);
  const float* from = taps.weights.data();
  for (size_t i = 0; i < taps.size(); ++i, from += taps.count) {
    const int odd = on_grid ? (taps.first[i] - taps.begin) & 1 : 0;
    first[i] = taps.first[i] - odd;
    int32_t* const to = weights.data() + i * static_cast<size_t>(count);
    // Sums are rounded and not weights, so that these add up.
    float sum = 0;
    for (int k = 0, last = 0; k < taps.count; ++k) {
      sum += from[k];
      const int next = k + 1 < taps.count ? static_cast<int>(sum * one + 0.5f) : kOne;
      const auto weight = static_cast<uint32_t>(next - last);
      to[(odd + k) / 2] |= static_cast<int32_t>((odd + k) % 2 == 0 ? weight : weight << 16);
      last = next;
    }
  }
}

}  // namespace tutti::data
