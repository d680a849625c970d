#include "platform/storage/objects/crc64_nvme.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace tutti::storage {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read from the bytes");

// The polynomial of the NVM Express specification 2.0, figure 71, bits reflected.
constexpr uint64_t kPolynomial = 0x9A6C9329AC4BC9B5;
constexpr size_t kWord = 8;

using Tables = std::array<std::array<uint64_t, 256>, kWord>;

// tables[k][b]: what byte b does to the checksum when k zero bytes follow it, so that eight bytes
// are taken in at once ("slicing by 8", Kounavis and Berry).
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint64_t byte = 0; byte < 256; ++byte) {
    uint64_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? kPolynomial : 0);
    tables[0][byte] = value;
  }
  for (size_t k = 1; k < kWord; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint64_t before = tables[k - 1][byte];
      tables[k][byte] = before >> 8 ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

// `crc` is not inverted.
uint64_t ByTables(uint64_t crc, const char* at, size_t left) {
  static constexpr Tables kTables = MakeTables();
  for (; left >= kWord; at += kWord, left -= kWord) {
    uint64_t word;
    std::memcpy(&word, at, kWord);
    word ^= crc;
    crc = 0;
    for (size_t k = 0; k < kWord; ++k) crc ^= kTables[kWord - 1 - k][word >> (8 * k) & 0xFF];
  }
  for (; left > 0; ++at, --left) {
    crc = crc >> 8 ^ kTables[0][(crc ^ static_cast<uint8_t>(*at)) & 0xFF];
  }
  return crc;
}

#if defined(__x86_64__) || defined(__aarch64__)

constexpr size_t kLanes = 4, kLane = 16, kStep = kLanes * kLane;

// x^n modulo the polynomial; the highest bit is the factor of x^0.
constexpr uint64_t PowerOfX(int n) {
  uint64_t value = uint64_t{1} << 63;
  for (int i = 0; i < n; ++i) value = value >> 1 ^ (value & 1 ? kPolynomial : 0);
  return value;
}

// A lane of 128 bits is the same, modulo the polynomial, as one `bits` further on: its first half
// times x^(bits + 64) plus its second half times x^bits ("Fast CRC Computation Using PCLMULQDQ",
// Gopal and others). The product of two reflected factors has one power of x too many.
struct Fold {
  uint64_t first, second;
};
constexpr Fold FoldBy(int bits) { return {PowerOfX(bits + 64 - 1), PowerOfX(bits - 1)}; }
constexpr Fold kByStep = FoldBy(8 * kStep), kByLane = FoldBy(8 * kLane);

#if defined(__x86_64__)
#define TUTTI_TARGET_OF_CRC64 [[gnu::target("pclmul,sse4.1")]]
using Lane = __m128i;

bool CanMultiply() {
  return __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.1") != 0;
}
TUTTI_TARGET_OF_CRC64 inline Lane Load(const char* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
TUTTI_TARGET_OF_CRC64 inline void Store(Lane lane, char* at) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(at), lane);
}
TUTTI_TARGET_OF_CRC64 inline Lane FirstWord(uint64_t word) {
  return _mm_cvtsi64_si128(static_cast<int64_t>(word));
}
TUTTI_TARGET_OF_CRC64 inline Lane Xor(Lane a, Lane b) { return _mm_xor_si128(a, b); }
TUTTI_TARGET_OF_CRC64 inline Lane Folded(Lane lane, const Fold& by) {
  const __m128i factors =
      _mm_set_epi64x(static_cast<int64_t>(by.second), static_cast<int64_t>(by.first));
  return _mm_xor_si128(_mm_clmulepi64_si128(lane, factors, 0x00),
                       _mm_clmulepi64_si128(lane, factors, 0x11));
}
#else
#define TUTTI_TARGET_OF_CRC64 [[gnu::target("+crypto")]]
using Lane = uint64x2_t;

bool CanMultiply() { return (::getauxval(AT_HWCAP) & HWCAP_PMULL) != 0; }
TUTTI_TARGET_OF_CRC64 inline Lane Load(const char* at) {
  return vreinterpretq_u64_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(at)));
}
TUTTI_TARGET_OF_CRC64 inline void Store(Lane lane, char* at) {
  vst1q_u8(reinterpret_cast<uint8_t*>(at), vreinterpretq_u8_u64(lane));
}
TUTTI_TARGET_OF_CRC64 inline Lane FirstWord(uint64_t word) {
  return vcombine_u64(vcreate_u64(word), vcreate_u64(0));
}
TUTTI_TARGET_OF_CRC64 inline Lane Xor(Lane a, Lane b) { return veorq_u64(a, b); }
TUTTI_TARGET_OF_CRC64 inline Lane Folded(Lane lane, const Fold& by) {
  return veorq_u64(vreinterpretq_u64_p128(vmull_p64(vgetq_lane_u64(lane, 0), by.first)),
                   vreinterpretq_u64_p128(vmull_p64(vgetq_lane_u64(lane, 1), by.second)));
}
#endif

// Needs at least one whole step; the tables take in the bytes that remain.
TUTTI_TARGET_OF_CRC64 uint64_t ByMultiplication(uint64_t crc, const char* at, size_t left) {
  Lane lanes[kLanes];
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = Load(at + kLane * i);
  lanes[0] = Xor(lanes[0], FirstWord(crc));
  for (at += kStep, left -= kStep; left >= kStep; at += kStep, left -= kStep) {
    for (size_t i = 0; i < kLanes; ++i) {
      lanes[i] = Xor(Folded(lanes[i], kByStep), Load(at + kLane * i));
    }
  }
  Lane last = lanes[0];
  for (size_t i = 1; i < kLanes; ++i) last = Xor(Folded(last, kByLane), lanes[i]);
  char bytes[kLane];
  Store(last, bytes);
  return ByTables(ByTables(0, bytes, kLane), at, left);
}
#undef TUTTI_TARGET_OF_CRC64

#endif

}  // namespace

uint64_t Crc64NvmeByTables(absl::string_view bytes, uint64_t before) {
  return ~ByTables(~before, bytes.data(), bytes.size());
}

uint64_t Crc64Nvme(absl::string_view bytes, uint64_t before) {
#if defined(__x86_64__) || defined(__aarch64__)
  static const bool can_multiply = CanMultiply();
  if (can_multiply && bytes.size() >= kStep) {
    return ~ByMultiplication(~before, bytes.data(), bytes.size());
  }
#endif
  return Crc64NvmeByTables(bytes, before);
}

}  // namespace tutti::storage
