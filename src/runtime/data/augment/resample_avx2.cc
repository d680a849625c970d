#include "runtime/data/augment/resample_avx2.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/machine/vector_width.h"

#ifdef __x86_64__
#include <immintrin.h>

TUTTI_BEGIN_AVX2_CODE
#include "runtime/data/augment/resample_band.h"

namespace tutti::data {
namespace {

struct Avx2Sums {
  static constexpr int kLanes = 8;

  struct Words {  // of kTile columns: 0 to 3 and 8 to 11, and the others
    __m256i low, high;
  };

  TUTTI_INLINE static __m256i Widened(const uint8_t* from) {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }

  TUTTI_INLINE static void AddPair(const uint8_t* row, const uint8_t* next, int32_t weights,
                                   Words& sums) {
    const __m256i a = Widened(row), b = Widened(next), w = _mm256_set1_epi32(weights);
    const __m256i low = _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), w);
    const __m256i high = _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), w);
    sums = {_mm256_add_epi32(sums.low, low), _mm256_add_epi32(sums.high, high)};
  }

  template <int kPairs>
  TUTTI_INLINE static void OverRows(const BandPlane& plane, int y, const uint8_t* from,
                                    int16_t* line) {
    constexpr int kShift = PairTaps::kBits - kLineBits;
    const int32_t* const weights = plane.y_weights + y * plane.y_pairs;
    const __m256i half = _mm256_set1_epi32(1 << (kShift - 1));
    Words sums{half, half};
    for (int k = 0; k < (kPairs > 0 ? kPairs : plane.y_pairs); ++k, from += 2 * plane.stride) {
      const uint8_t* const next = 2 * k + 1 < plane.y_taps ? from + plane.stride : from;
      AddPair(from, next, weights[k], sums);
    }
    const __m256i sum = _mm256_packs_epi32(_mm256_srai_epi32(sums.low, kShift),
                                           _mm256_srai_epi32(sums.high, kShift));
    _mm256_store_si256(reinterpret_cast<__m256i*>(line), sum);
  }

  template <int kPairs>
  TUTTI_INLINE static void OverColumns(const BandPlane& plane, const int16_t* columns, int x,
                                       float* to) {
    const int32_t* const weights = plane.x_weights + x * plane.x_pairs;
    const int16_t* from = columns + static_cast<size_t>(plane.x_first[x] - plane.begin) * kBandRows;
    __m256i upper = _mm256_setzero_si256(), lower = upper;
    for (int k = 0; k < (kPairs > 0 ? kPairs : plane.x_pairs); ++k, from += 2 * kBandRows) {
      const __m256i weight = _mm256_set1_epi32(weights[k]);
      const auto* const pairs = reinterpret_cast<const __m256i*>(from);
      upper = _mm256_add_epi32(upper, _mm256_madd_epi16(_mm256_loadu_si256(pairs), weight));
      lower = _mm256_add_epi32(lower, _mm256_madd_epi16(_mm256_loadu_si256(pairs + 1), weight));
    }
    _mm256_storeu_ps(to, _mm256_cvtepi32_ps(upper));
    _mm256_storeu_ps(to + kLanes, _mm256_cvtepi32_ps(lower));
  }
};

}  // namespace

void ResizeABandAvx2(const ResizeBand& band) { ResizeBy<Avx2Sums>(band); }

}  // namespace tutti::data
TUTTI_END_AVX2_CODE

#else
namespace tutti::data {
void ResizeABandAvx2(const ResizeBand&) {}
}  // namespace tutti::data
#endif
