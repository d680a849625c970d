#include "runtime/data/decode/jpeg/planes_fake.h"

#include <algorithm>
#include <cstring>

namespace tutti::data {
namespace {

bool SameSamplesOfPlane(const Plane& a, const Plane& b, const Region& region, int denominator) {
  if (a.whole != b.whole || a.across != b.across || a.down != b.down) return false;
  const int reach_x = a.across == 2 ? 1 : 0, reach_y = a.down == 2 ? 1 : 0;
  const auto sample = [denominator](int pixel, int ratio) { return pixel / denominator / ratio; };
  const int left = std::max(0, sample(region.left, a.across) - reach_x);
  const int top = std::max(0, sample(region.top, a.down) - reach_y);
  const int right =
      std::min(a.whole.width - 1, sample(region.left + region.width - 1, a.across) + reach_x);
  const int bottom =
      std::min(a.whole.height - 1, sample(region.top + region.height - 1, a.down) + reach_y);
  for (int y = top; y <= bottom; ++y) {
    const auto count = static_cast<size_t>(std::max(0, right - left + 1));
    if (std::memcmp(a.at(left, y), b.at(left, y), count) != 0) return false;
  }
  return true;
}

}  // namespace

bool SameSamples(const Planes& a, const Planes& b, const Region& region, int denominator) {
  if (a.colors != b.colors) return false;
  for (int c = 0; c < a.count(); ++c) {
    if (!SameSamplesOfPlane(a.plane[c], b.plane[c], region, denominator)) return false;
  }
  return true;
}

}  // namespace tutti::data
