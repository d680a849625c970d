// Computes the inverse transform to blocks of 8 x 8 samples with vectors of 16 bits, two blocks at
// a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::data {

// Does the work of a BlockTransform of size 8; the machine must have AVX2. Returns how many of the
// blocks it has done: it stops before two of which one has a coefficient that no image has.
int TransformWholeAvx2(const int16_t* coefficients, int blocks, const uint16_t* steps,
                       uint8_t* samples, size_t stride);

}  // namespace tutti::data
