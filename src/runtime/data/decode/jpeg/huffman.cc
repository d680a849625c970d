#include "runtime/data/decode/jpeg/huffman.h"

#include <algorithm>
#include <cstddef>

namespace tutti::data {
namespace {

// Calls `with(code, length, symbol)` for each code, shortest first. False: the lengths are those of
// no prefix code, or one has ones only, which T.81 forbids.
template <typename With>
bool ForEachCode(const HuffmanCode& code, const With& with) {
  uint32_t next = 0;
  size_t place = 0;
  for (int length = 1; length <= 16; ++length, next <<= 1) {
    for (int i = 0; i < code.counts[static_cast<size_t>(length)]; ++i, ++next) {
      if (place == code.symbols.size()) return false;
      with(next, length, code.symbols[place++]);
    }
    if (next >= 1u << length) return false;
  }
  return true;
}

bool MakeSymbols(const HuffmanCode& code, Symbols& to) {
  to.quick.fill(0);
  to.symbols = code.symbols;
  const bool sound = ForEachCode(code, [&to](uint32_t bits, int length, uint8_t symbol) {
    if (length > Symbols::kBits || bits >> length != 0) return;
    const int rest = Symbols::kBits - length;
    std::fill_n(to.quick.begin() + (bits << rest), 1 << rest,
                static_cast<uint16_t>(length << 8 | symbol));
  });
  uint32_t next = 0;
  int place = 0;
  for (int length = 1; length <= 16; ++length, next <<= 1) {
    const auto at = static_cast<size_t>(length);
    to.offset[at] = place - static_cast<int>(next);
    next += code.counts[at];
    place += code.counts[at];
    to.end[at] = next << (16 - length);
  }
  return sound;
}

// Fills the entries of a code that a value of `size` bits follows, of the `looked` bits together:
// `make(value)` gives one.
template <typename Entry, typename Make>
void FillValues(Entry* from, int looked, int size, const Make& make) {
  const size_t run = size_t{1} << (looked - size);
  for (int value = 0; value < 1 << size; ++value, from += run) {
    std::fill_n(from, run, make(size == 0 ? 0 : Extend(value, size)));
  }
}

constexpr uint32_t kNoCoefficient = uint32_t{Coefficients::kNone} << 10;

constexpr uint32_t Entry(int bits, int first, int last, int value) {
  const auto high = (static_cast<uint32_t>(value) & 127) << 24;
  return static_cast<uint32_t>(bits | (first - 1) << 6 | last << 10) | high;
}

constexpr uint32_t LongEntry(int code_bits, int value_bits, int first) {
  const auto lengths = static_cast<uint32_t>(value_bits << 17 | code_bits << 21);
  return Entry(code_bits + value_bits, first, first, 0) | lengths | 1u << 31;
}

// By the next `bits` bits the one coefficient there, or the end.
bool MakeSingles(const HuffmanCode& code, int bits, std::vector<uint32_t>& singles) {
  singles.assign(size_t{1} << bits, kNoCoefficient);
  return ForEachCode(code, [&](uint32_t prefix, int length, uint8_t symbol) {
    const int zeros = symbol >> 4, size = symbol & 15, rest = bits - length;
    if (rest < 0 || rest >= kMaxTableBits || size > kMaxAcBits) return;
    const bool ends = size == 0 && zeros < 15;
    const int first = ends ? 1 : zeros + 1, last = ends ? Coefficients::kEnd : first;
    uint32_t* const from = singles.data() + (size_t{prefix} << rest);
    if (rest >= size && size <= Coefficients::kMaxValueBits) {
      FillValues(from, rest, size,
                 [=](int value) { return Entry(length + size, first, last, value); });
    } else if (length + size <= Coefficients::kMaxBits) {
      std::fill_n(from, size_t{1} << rest, LongEntry(length, size, first));
    }
  });
}

// The entry where `a` comes first and then `b`, which counts only if it is all there.
uint32_t Joined(uint32_t a, uint32_t b, int bits) {
  const int length = Coefficients::Bits(a) + Coefficients::Bits(b);
  const int last = Coefficients::Last(a) + Coefficients::Last(b);
  const bool pair = Coefficients::Bits(b) != 0 && length <= bits && !Coefficients::IsLong(a | b) &&
                    Coefficients::Last(a) < Coefficients::kEnd;
  const uint32_t kept = a & (127u << 24 | 15u << 6);
  const uint32_t joined = kept | static_cast<uint32_t>(length | last << 10) | (b >> 24 & 127) << 17;
  return pair ? joined : a;
}

}  // namespace

bool MakeDcTable(const HuffmanCode& code, int bits, DcTable& table) {
  table.shift = 64 - bits;
  table.entries.assign(size_t{1} << bits, 0);
  if (!MakeSymbols(code, table.symbols)) return false;
  bool sizes_are_sound = true;
  ForEachCode(code, [&](uint32_t prefix, int length, uint8_t size) {
    const int rest = bits - length;
    if (size > 15) sizes_are_sound = false;
    if (size > kMaxDcBits || rest < size) return;
    const auto low = static_cast<uint32_t>(length + size);
    FillValues(table.entries.data() + (size_t{prefix} << rest), rest, size,
               [low](int value) { return static_cast<uint32_t>(value) << 16 | low; });
  });
  return sizes_are_sound;
}

bool MakeAcTable(const HuffmanCode& code, int bits, AcTable& table) {
  table.shift = 64 - bits;
  thread_local std::vector<uint32_t> singles;
  if (!MakeSymbols(code, table.symbols) || !MakeSingles(code, bits, singles)) return false;
  table.entries.resize(singles.size());
  for (size_t i = 0; i < singles.size(); ++i) {
    const size_t rest = i << Coefficients::Bits(singles[i]) & (singles.size() - 1);
    table.entries[i] = Joined(singles[i], singles[rest], bits);
  }
  return true;
}

}  // namespace tutti::data
