#include "runtime/data/decode/huffman.h"

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

// Fills the entries of a code that its value follows, of the `looked` bits: `entry(value)` says
// how.
template <typename Entry, typename Make>
void FillValues(Entry* from, int looked, int size, const Make& make) {
  const size_t run = size_t{1} << (looked - size);
  for (int value = 0; value < 1 << size; ++value, from += run) {
    std::fill_n(from, run, make(size == 0 ? 0 : Extend(value, size)));
  }
}

constexpr uint32_t kNoCoefficient = uint32_t{Coefficients::kNone} << 8;

// By the next `bits` bits the one coefficient there: bits, distance and value, eight, eight and
// sixteen bits of each entry.
bool MakeSingles(const HuffmanCode& code, int bits, std::vector<uint32_t>& singles) {
  singles.assign(size_t{1} << bits, kNoCoefficient);
  return ForEachCode(code, [&](uint32_t prefix, int length, uint8_t symbol) {
    const int zeros = symbol >> 4, size = symbol & 15, rest = bits - length;
    if (rest < size || size > kMaxAcBits || prefix >> length != 0) return;
    const bool ends = size == 0 && zeros < 15;
    const int distance = ends ? Coefficients::kEnd : zeros + 1;
    const auto low = static_cast<uint32_t>(distance << 8 | (length + size));
    FillValues(singles.data() + (size_t{prefix} << rest), rest, size,
               [low](int value) { return static_cast<uint32_t>(value) << 16 | low; });
  });
}

// The entry of AcTable where `a` comes first and then `b`, which counts only if it is all there.
uint64_t Joined(uint32_t a, uint32_t b, uint32_t bits) {
  const uint32_t length = a & 255, distance = a >> 8 & 255;
  const uint32_t both = length + (b & 255);
  const bool ends = distance == Coefficients::kEnd;
  const uint64_t first = ends ? 1 : distance;
  const bool pair = (b & 255) != 0 && both <= bits && distance < Coefficients::kEnd;
  const uint64_t low = pair ? both | (distance + (b >> 8 & 255)) << 8 | (b & 0xFFFF0000) : a;
  return low | uint64_t{a >> 16} << 32 | first << 48;
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
    const size_t rest = i << (singles[i] & 255) & (singles.size() - 1);
    table.entries[i] = Joined(singles[i], singles[rest], static_cast<uint32_t>(bits));
  }
  return true;
}

}  // namespace tutti::data
