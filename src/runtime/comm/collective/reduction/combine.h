// Combine reduces many inputs at once, where all of them lie in memory that this rank can read:
// each byte is read once and each result written once, without passing through partial sums in
// memory. The order of the additions is that of the inputs; floating point of 16 bits is rounded
// once, at the end.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/comm/collective/reduction/reduce.h"

namespace tutti::comm {

// Sets outputs[k][i] = inputs[0][i] op inputs[1][i] op … for every k and `count` elements. At least
// two inputs. An output may be one of the inputs, else nothing overlaps; nothing needs to be
// aligned. `last`: a mean is divided now.
void Combine(const Reduction& reduction, std::span<const std::byte* const> inputs,
             std::span<std::byte* const> outputs, size_t count, bool last);

}  // namespace tutti::comm
