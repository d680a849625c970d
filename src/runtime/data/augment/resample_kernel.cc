#include "runtime/data/augment/resample_kernel.h"

#include "runtime/data/augment/resample_avx2.h"
#include "runtime/data/augment/resample_band.h"

namespace tutti::data {
namespace {

TUTTI_INLINE int LowHalf(int32_t pair) { return static_cast<int16_t>(pair); }
TUTTI_INLINE int HighHalf(int32_t pair) { return pair >> 16; }

// On any machine.
struct PlainSums {
  static constexpr int kLanes = 4;

  template <int kPairs>
  TUTTI_INLINE static void OverRows(const BandPlane& plane, int y, const uint8_t* from,
                                    int16_t* line) {
    const int32_t* const weights = plane.y_weights + y * plane.y_pairs;
    int32_t sums[kTile] = {};
    for (int k = 0; k < (kPairs > 0 ? kPairs : plane.y_pairs); ++k, from += 2 * plane.stride) {
      const uint8_t* const next = 2 * k + 1 < plane.y_taps ? from + plane.stride : from;
      const int one = LowHalf(weights[k]), other = HighHalf(weights[k]);
      for (size_t i = 0; i < kTile; ++i) sums[i] += from[i] * one + next[i] * other;
    }
    constexpr int kShift = PairTaps::kBits - kLineBits;
    for (size_t i = 0; i < kTile; ++i) {
      line[i] = static_cast<int16_t>((sums[i] + (1 << (kShift - 1))) >> kShift);
    }
  }

  template <int kPairs>
  TUTTI_INLINE static void OverColumns(const BandPlane& plane, const int16_t* columns, int x,
                                       float* to) {
    const int32_t* const weights = plane.x_weights + x * plane.x_pairs;
    const int16_t* from = columns + static_cast<size_t>(plane.x_first[x] - plane.begin) * kBandRows;
    int32_t sums[kBandRows] = {};
    for (int k = 0; k < (kPairs > 0 ? kPairs : plane.x_pairs); ++k, from += 2 * kBandRows) {
      const int one = LowHalf(weights[k]), other = HighHalf(weights[k]);
      for (size_t y = 0; y < kBandRows; ++y) sums[y] += from[2 * y] * one + from[2 * y + 1] * other;
    }
    for (size_t y = 0; y < kBandRows; ++y) to[y] = static_cast<float>(sums[y]);
  }
};

void ResizePlain(const ResizeBand& band) { ResizeBy<PlainSums>(band); }

}  // namespace

size_t ScratchValues(size_t count) { return SummedColumns(count) * kBandRows * 3; }

// With 512 bits it is not faster: a column of a band is 16 pairs, and most is not sums.
const Kernels<void(const ResizeBand&)> kResizeABand = {ResizePlain, ResizeABandAvx2};

}  // namespace tutti::data
