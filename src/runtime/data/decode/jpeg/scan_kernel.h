// Reads the blocks of a scan from its entropy code: the loop that most of an image's time is spent
// in, compiled for each set of instructions.
//
// The next bits stand at the top of a 64-bit word, which is filled up after every three looks into
// a table without asking whether it is needed. Nothing here asks for the end of the code: it is
// padded, a block takes at most kMaxBlockBytes, and the caller looks at `Used` when a piece is
// read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/data/decode/jpeg/huffman.h"
#include "runtime/data/instruction_kernels.h"

namespace tutti::data {

// Bits of a piece of entropy code; EntropyCode::kPadding bytes behind it are readable.
struct BitSource {
  uint64_t bits = 0;  // the next at the top
  int count = 0;      // how many of them are there; what is below is either 0 or right
  const uint8_t* next = nullptr;
  const uint8_t* begin = nullptr;
  const uint8_t* end = nullptr;

  // Returns how many bits were taken; more than (end - begin) * 8 if the piece was too short.
  ptrdiff_t Used() const { return (next - begin) * 8 - count; }
};

// A block of a coded unit.
struct UnitBlock {
  const DcTable* dc = nullptr;
  const AcTable* ac = nullptr;
  int component = 0;
  int16_t* coefficients = nullptr;  // of the first unit, 64 in rows
  ptrdiff_t step = 0;               // from one unit's to the next's
};

struct Units {
  const UnitBlock* blocks = nullptr;  // of one unit, in the scan's order
  int blocks_in_unit = 0;
  int* last_dc = nullptr;  // by component: of the block before
  int first = 0;           // which unit of the blocks' memory is read first
};

// Reads `count` units from `source`, into the memory of their blocks or to pass over them. False:
// something that a sound image does not have; or the piece ended long ago.
using UnitReader = bool(const Units& units, int count, BitSource& source);
extern const Kernels<UnitReader> kReadUnits, kSkipUnits;

}  // namespace tutti::data
