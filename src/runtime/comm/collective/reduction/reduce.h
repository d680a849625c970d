// Apply does the arithmetic of a reduction, element by element. Floating point of 16 bits is added
// in 32 bits and rounded to nearest even once per addition; integers wrap around; a NaN wins
// minimum and maximum. Compiled for several instruction sets, chosen when the program starts; all
// of them give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/comm/data_type.h"

namespace tutti::comm {

struct Reduction {
  DataType type;
  ReduceOp op;
  // The divisor of ReduceOp::kMean: its sum is divided (integers: toward zero) in the last
  // addition.
  int ranks;

  // Sets accumulator[i] = incoming[i] op accumulator[i] for `count` elements. `last`: nothing will
  // be added any more. Neither needs to be aligned; they do not overlap.
  void Apply(void* accumulator, const void* incoming, size_t count, bool last) const;
};

}  // namespace tutti::comm
