#include "runtime/data/decode/jpeg/scan_kernel.h"

#include <bit>
#include <cstring>

#include "runtime/data/decode/jpeg/entropy_code.h"

namespace tutti::data {
namespace {

// 63 coefficients of at most 16 + 10 bits and a first of 16 + 11, and what is read ahead.
constexpr size_t kMaxBlockBytes = (63 * 26 + 27) / 8 + 1, kAhead = 8;
static_assert(kAhead + kMaxBlockBytes + 2 * sizeof(uint64_t) <= EntropyCode::kPadding);

// Where the file's order of coefficients puts each of them.
alignas(64) constexpr uint8_t kPlaceInBlock[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

// At least 56 bits are there afterwards.
TUTTI_INLINE void Refill(BitSource& s) {
  uint64_t bytes;
  std::memcpy(&bytes, s.next, sizeof bytes);
  if constexpr (std::endian::native == std::endian::little) bytes = __builtin_bswap64(bytes);
  s.bits |= bytes >> s.count;
  s.next += (63 - s.count) >> 3;
  s.count |= 56;
}

TUTTI_INLINE void Drop(BitSource& s, int bits) {
  s.bits <<= bits;
  s.count -= bits;
}

// `bits` > 0 bits as a coefficient's value.
TUTTI_INLINE int TakeValue(BitSource& s, int bits) {
  const int value = static_cast<int>(s.bits >> (64 - bits));
  Drop(s, bits);
  return Extend(value, bits);
}

// The next symbol, or -1 if the bits are the code of none.
TUTTI_INLINE int TakeSymbol(const Symbols& symbols, BitSource& s) {
  const unsigned quick = symbols.quick[s.bits >> (64 - Symbols::kBits)];
  if (quick != 0) {
    Drop(s, static_cast<int>(quick >> 8));
    return static_cast<int>(quick & 255);
  }
  const auto next = static_cast<uint32_t>(s.bits >> 48);
  for (size_t length = Symbols::kBits + 1; length <= 16; ++length) {
    if (next >= symbols.end[length]) continue;
    Drop(s, static_cast<int>(length));
    return symbols.symbols[static_cast<size_t>(static_cast<int>(next >> (16 - length)) +
                                               symbols.offset[length])];
  }
  return -1;
}

TUTTI_INLINE bool TakeDifference(const DcTable& table, BitSource& s, int& difference) {
  const uint32_t entry = table.entries[s.bits >> table.shift];
  if (Difference::Bits(entry) != 0) [[likely]] {
    Drop(s, Difference::Bits(entry));
    difference = Difference::Value(entry);
    return true;
  }
  const int size = TakeSymbol(table.symbols, s);
  if (size < 0 || size > kMaxDcBits) return false;
  difference = size == 0 ? 0 : TakeValue(s, size);
  return true;
}

// Between two fillings.
constexpr int kLooks = 56 / Coefficients::kMaxBits;

enum class Step { kGoOn, kBlockEnds, kUnsound };

// One coefficient, whatever the length of its code, after the one at `at`.
template <bool kKeep>
TUTTI_INLINE Step TakeOne(const AcTable& table, BitSource& s, int16_t* block, size_t& at) {
  Refill(s);
  const int symbol = TakeSymbol(table.symbols, s);
  const int zeros = symbol >> 4, size = symbol & 15;
  if (symbol < 0 || size > kMaxAcBits) return Step::kUnsound;
  if (size == 0 && zeros < 15) return Step::kBlockEnds;
  at += static_cast<size_t>(zeros) + 1;
  if (at > 63) return Step::kUnsound;
  if (size > 0) {
    const int value = TakeValue(s, size);
    if (kKeep) block[kPlaceInBlock[at]] = static_cast<int16_t>(value);
  }
  return at == 63 ? Step::kBlockEnds : Step::kGoOn;
}

// What lies under the next bits is all of this block.
template <bool kKeep>
TUTTI_INLINE void Take(uint32_t entry, BitSource& s, int16_t* block, size_t at, size_t last) {
  if (kKeep && Coefficients::IsLong(entry)) {
    const int bits = Coefficients::ValueBits(entry);
    const auto value = static_cast<int>(s.bits << Coefficients::CodeBits(entry) >> (64 - bits));
    block[kPlaceInBlock[last]] = static_cast<int16_t>(Extend(value, bits));
  } else if (kKeep) {
    // The last one first: where there is but one, the first has the right value.
    block[kPlaceInBlock[last]] = static_cast<int16_t>(Coefficients::LastValue(entry));
    block[kPlaceInBlock[at + Coefficients::First(entry)]] =
        static_cast<int16_t>(Coefficients::FirstValue(entry));
  }
  Drop(s, Coefficients::Bits(entry));
}

// The block's coefficients but the first.
template <bool kKeep>
TUTTI_INLINE bool TakeOthers(const AcTable& table, BitSource& s, int16_t* block) {
  const uint32_t* const entries = table.entries.data();
  const int shift = table.shift;
  size_t at = 0;
  while (true) {
    Refill(s);
    uint32_t entry;
    size_t last;
    for (int look = 0; look < kLooks; ++look) {
      entry = entries[s.bits >> shift];
      last = at + Coefficients::Last(entry);
      if (last >= 63) break;
      Take<kKeep>(entry, s, block, at, last);
      at = last;
    }
    if (last < 63) continue;
    const bool ends = Coefficients::Last(entry) >= Coefficients::kEnd;
    const size_t place = ends ? last - Coefficients::kEnd + 1 : last;
    if (Coefficients::Bits(entry) != 0 && place <= 63) {
      // What comes last of an end is a 0 behind the block's last coefficient.
      Take<kKeep>(entry, s, block, at, place);
      return true;
    }
    const Step step = TakeOne<kKeep>(table, s, block, at);
    if (step != Step::kGoOn) return step == Step::kBlockEnds;
  }
}

template <bool kKeep>
TUTTI_INLINE bool TakeUnits(const Units& units, int count, BitSource& source) {
  BitSource s = source;
  for (int unit = 0; unit < count; ++unit) {
    for (int i = 0; i < units.blocks_in_unit; ++i) {
      const UnitBlock& block = units.blocks[i];
      int16_t* const to = kKeep ? block.coefficients + (units.first + unit) * block.step : nullptr;
      if constexpr (kKeep) std::memset(to, 0, 64 * sizeof(int16_t));
      if (s.next > s.end + kAhead) return false;
      Refill(s);
      int difference = 0;
      if (!TakeDifference(*block.dc, s, difference)) return false;
      // Sums that no image has wrap around.
      auto& dc = units.last_dc[block.component];
      dc = static_cast<int>(static_cast<unsigned>(dc) + static_cast<unsigned>(difference));
      if (kKeep) to[0] = static_cast<int16_t>(dc);
      if (!TakeOthers<kKeep>(*block.ac, s, to)) return false;
    }
  }
  source = s;
  return true;
}

// What AVX2 stands for here is shifts that leave the flags alone.
bool ReadPlain(const Units& units, int count, BitSource& source) {
  return TakeUnits<true>(units, count, source);
}
bool SkipPlain(const Units& units, int count, BitSource& source) {
  return TakeUnits<false>(units, count, source);
}
TUTTI_AVX2_CODE bool ReadAvx2(const Units& units, int count, BitSource& source) {
  return TakeUnits<true>(units, count, source);
}
TUTTI_AVX2_CODE bool SkipAvx2(const Units& units, int count, BitSource& source) {
  return TakeUnits<false>(units, count, source);
}

}  // namespace

const Kernels<UnitReader> kReadUnits = {ReadPlain, ReadAvx2};
const Kernels<UnitReader> kSkipUnits = {SkipPlain, SkipAvx2};

}  // namespace tutti::data
