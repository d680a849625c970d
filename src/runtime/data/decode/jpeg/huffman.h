// Makes the Huffman tables of a JPEG (ITU T.81, C and F.2.2) for a fast reader: one look at the
// next bits gives whole coefficients, up to two at a time.
//
// The code of a coefficient says how many zeros stand before it and how many bits its value has;
// these bits follow. Where code and value are short enough, as most are, the table of the next bits
// has the value. A longer one is read in steps (`Symbols`).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace tutti::data {

// As the file gives it: how many codes have each length, and their symbols in order.
struct HuffmanCode {
  std::array<uint8_t, 17> counts{};  // [0] is not used
  std::array<uint8_t, 256> symbols{};
  bool operator==(const HuffmanCode&) const = default;
};

// A symbol at a time.
struct Symbols {
  static constexpr int kBits = 9;
  std::array<uint16_t, 1 << kBits> quick;  // by the next bits: length << 8 | symbol; 0 if longer
  std::array<uint32_t, 18> end;  // of each length, the first 16 bits that are beyond its codes
  std::array<int, 17> offset;    // of each length, what added to a code is its symbol's place
  std::array<uint8_t, 256> symbols;
};

// Decodes the first coefficients of blocks, which are differences from the block before.
struct DcTable {
  int shift = 0;                  // 64 - the bits that are looked at
  std::vector<uint32_t> entries;  // see Difference
  Symbols symbols;
};

// Decodes all other coefficients. The entries are laid out as Coefficients says.
struct AcTable {
  int shift = 0;
  std::vector<uint32_t> entries;
  Symbols symbols;
};

// An entry of DcTable: bits 0-7 how many bits it takes (0: read the symbol), 16-31 the difference.
struct Difference {
  static int Bits(uint32_t entry) { return static_cast<int>(entry & 63); }
  static int Value(uint32_t entry) { return static_cast<int32_t>(entry) >> 16; }
};

// An entry of AcTable holds up to two coefficients, or one and the end of the block.
//   bits  0- 5  how many bits it takes
//   bits  6- 9  how far the first is beyond where the block stands, less 1
//   bits 10-16  how far the last is, + kEnd if the block ends then; kNone: read the symbol
//   bits 17-23  the last one's value
//   bits 24-30  the first one's value; it is the last, too, if there is but one
// An entry of an end alone has a coefficient of 0 at 1, which the block may take: it is 0 anyway.
// Or bit 31 is set, and there is one coefficient whose value reaches beyond the bits looked at:
//   bits 17-20  how many bits the value has
//   bits 21-24  how many bits the code before it
// Who only passes over need not tell the two apart.
struct Coefficients {
  static constexpr int kEnd = 64, kNone = 127;
  static constexpr int kMaxValueBits = 6;  // of values in entries
  static constexpr int kMaxBits = 18;      // that an entry takes
  static int Bits(uint32_t entry) { return static_cast<int>(entry & 63); }
  static int First(uint32_t entry) { return static_cast<int>(entry >> 6 & 15) + 1; }
  static int Last(uint32_t entry) { return static_cast<int>(entry >> 10 & 127); }
  static int LastValue(uint32_t entry) { return static_cast<int32_t>(entry << 8) >> 25; }
  static int FirstValue(uint32_t entry) { return static_cast<int32_t>(entry << 1) >> 25; }
  static bool IsLong(uint32_t entry) { return static_cast<int32_t>(entry) < 0; }
  static int ValueBits(uint32_t entry) { return static_cast<int>(entry >> 17 & 15); }
  static int CodeBits(uint32_t entry) { return static_cast<int>(entry >> 21 & 15); }
};

// The most bits that the value of a coefficient has in an image of 8 bits: first, others.
inline constexpr int kMaxDcBits = 11, kMaxAcBits = 10;

// False: no prefix code, or sizes that T.81 has not. `bits`, 2 to kMaxTableBits, are looked at:
// more are faster to read with, and slower to make.
inline constexpr int kMaxTableBits = 14;
bool MakeDcTable(const HuffmanCode& code, int bits, DcTable& table);
bool MakeAcTable(const HuffmanCode& code, int bits, AcTable& table);

// Returns the value of which `bits` > 0 bits were read.
constexpr int Extend(int value, int bits) {
  return value < 1 << (bits - 1) ? value - (1 << bits) + 1 : value;
}

}  // namespace tutti::data
