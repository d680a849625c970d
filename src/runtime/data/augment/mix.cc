#include "runtime/data/augment/mix.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "base/machine/vector_width.h"

namespace tutti::data {
namespace {

double Normal(RandomStream& random) {  // Box and Muller 1958
  const double radius = std::sqrt(-2 * std::log(1 - random.Uniform(0, 1)));
  return radius * std::cos(2 * std::numbers::pi * random.Uniform(0, 1));
}

// Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables", ACM TOMS 2000; for a shape
// below 1 as they say, by one of shape + 1. The logarithm: what shapes near 0 give underflows.
double LogOfGamma(double shape, RandomStream& random) {
  if (shape < 1) {
    const double power = std::log(1 - random.Uniform(0, 1)) / shape;
    return LogOfGamma(shape + 1, random) + power;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = Normal(random), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(1 - random.Uniform(0, 1)) < x * x / 2 + d * (1 - v + std::log(v))) {
      return std::log(d * v);
    }
  }
}

double Beta(double alpha, RandomStream& random) {
  const double first = LogOfGamma(alpha, random), second = LogOfGamma(alpha, random);
  return 1 / (1 + std::exp(second - first));
}

// Around a point anywhere in the image, cut off at its edges.
Region DrawCut(double area, ImageSize size, RandomStream& random) {
  const auto draw = [&](int side, int& first, int& length) {
    const int wanted = static_cast<int>(side * std::sqrt(area));
    const int centre = static_cast<int>(random.Below(static_cast<uint64_t>(side)));
    first = std::max(centre - wanted / 2, 0);
    length = std::min(centre - wanted / 2 + wanted, side) - first;
  };
  Region cut;
  draw(size.width, cut.left, cut.width);
  draw(size.height, cut.top, cut.height);
  return cut;
}

TUTTI_INLINE void Blend(float own, float* first, float* second, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const float a = first[i], b = second[i];
    first[i] = own * a + (1 - own) * b;
    second[i] = own * b + (1 - own) * a;
  }
}

TUTTI_INLINE void Blend(float own, uint16_t* first, uint16_t* second, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const float a = std::bit_cast<float>(uint32_t{first[i]} << 16);
    const float b = std::bit_cast<float>(uint32_t{second[i]} << 16);
    first[i] = ToBFloat16(own * a + (1 - own) * b);
    second[i] = ToBFloat16(own * b + (1 - own) * a);
  }
}

TUTTI_INLINE void BlendAs(PixelType type, float own, void* first, void* second, size_t count) {
  if (type == PixelType::kFloat32) {
    Blend(own, static_cast<float*>(first), static_cast<float*>(second), count);
  } else {
    Blend(own, static_cast<uint16_t*>(first), static_cast<uint16_t*>(second), count);
  }
}

}  // namespace

absl::Status Validate(const Mixing& mixing) {
  for (const double alpha : {mixing.mixup, mixing.cutmix}) {
    if (alpha == 0 || (alpha >= 0.001 && alpha <= 1000)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("mixing: mixup and cutmix must be 0, or 0.001 to 1000, and not ", alpha));
  }
  return absl::OkStatus();
}

Mix DrawMix(const Mixing& mixing, ImageSize size, RandomStream random) {
  Mix mix;
  if (!mixing.any()) return mix;
  const bool both = mixing.mixup > 0 && mixing.cutmix > 0;
  const bool cut = both ? random.Coin() : mixing.cutmix > 0;
  const double own = Beta(cut ? mixing.cutmix : mixing.mixup, random);
  mix.own = static_cast<float>(own);
  if (cut) {
    mix.cut = DrawCut(1 - own, size, random);
    const double pixels = double(size.width) * size.height;
    mix.own = static_cast<float>(1 - mix.cut.width * mix.cut.height / pixels);
  }
  return mix;
}

void MixPair(const Mix& mix, const Normalizer& normalizer, ImageSize size, void* first,
             void* second) {
  if (mix.own == 1) return;
  const NormalizedTarget a = normalizer.Target(size.width, size.height, first);
  const NormalizedTarget b = normalizer.Target(size.width, size.height, second);
  if (mix.cut.width > 0) {
    ForEachRun(a, mix.cut, [&](size_t offset, size_t bytes) {
      std::swap_ranges(a.out + offset, a.out + offset + bytes, b.out + offset);
    });
    return;
  }
  const size_t count = static_cast<size_t>(size.width) * static_cast<size_t>(size.height) * 3;
  base::Vectorised([&]() TUTTI_INLINE_BODY { BlendAs(a.type, mix.own, first, second, count); });
}

}  // namespace tutti::data
