#include "base/machine/copy_bytes.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tutti::base {

void CopyByVectors(void* to, const void* from, size_t bytes) {
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
#if defined(__SSE2__)
  constexpr size_t kLine = 64, kLane = 16;
  // Four loads before four stores: the compiler does not take the loop for a memcpy.
  for (; bytes >= kLine; bytes -= kLine, target += kLine, source += kLine) {
    __m128i lanes[kLine / kLane];
    for (size_t i = 0; i < kLine / kLane; ++i) {
      lanes[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i * kLane));
    }
    for (size_t i = 0; i < kLine / kLane; ++i) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(target + i * kLane), lanes[i]);
    }
  }
#endif
  if (bytes > 0) std::memcpy(target, source, bytes);
}

}  // namespace tutti::base
