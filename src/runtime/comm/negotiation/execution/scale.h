// Copies elements and multiplies them on the way: what happens to a tensor between its own memory
// and the fusion buffer, in one pass. Pure functions.
#pragma once

#include <cstddef>

#include "runtime/comm/data_type.h"

namespace tutti::comm {

// Writes `count` elements from `from` to `to` (which may be equal), times `factor`: floating point
// in its own type (16-bit in 32 bits), integers in double precision, rounded toward zero and held
// within their range, bools unchanged.
void CopyScaled(const void* from, void* to, size_t count, DataType type, double factor);

// Fills with what changes nothing in a reduction: 0 in a sum, 1 in a product, the greatest in a
// minimum.
void FillNeutral(void* data, size_t count, DataType type, ReduceOp op);

}  // namespace tutti::comm
