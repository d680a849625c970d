// Computes Sobol's low-discrepancy sequence in Gray code order (Antonov and Saleev 1979), with the
// direction numbers of Joe and Kuo (2008, "Constructing Sobol sequences with better two-dimensional
// projections"). Pure functions.
#pragma once

#include <cstdint>

namespace tutti::flow {

inline constexpr int kSobolDimensions = 21;

// Returns the coordinate `dimension` (from 0) of the point `index` (from 0), as 32 bits behind the
// point.
uint32_t SobolBits(uint32_t index, int dimension);

}  // namespace tutti::flow
