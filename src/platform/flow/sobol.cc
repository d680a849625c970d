#include "platform/flow/sobol.h"

namespace tutti::flow {
namespace {

// A primitive polynomial of degree `degree`, its inner coefficients as bits, and the first
// direction numbers. The first dimension is van der Corput's and has none.
struct Direction {
  int degree;
  uint32_t coefficients;
  uint32_t first[7];
};

constexpr Direction kDirections[kSobolDimensions - 1] = {
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}},
    {5, 13, {1, 1, 1, 3, 11}},
    {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}},
    {6, 13, {1, 1, 1, 15, 21, 21}},
    {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}},
    {6, 22, {1, 3, 1, 15, 13, 25}},
    {6, 25, {1, 1, 5, 5, 19, 61}},
    {7, 1, {1, 3, 7, 11, 23, 15, 103}},
    {7, 4, {1, 3, 7, 13, 13, 15, 69}},
};

// The direction numbers of a dimension, each shifted to the top of 32 bits.
struct Directions {
  uint32_t v[32];
};

Directions DirectionsOf(int dimension) {
  Directions result{};
  uint32_t* const v = result.v;
  if (dimension == 0) {
    for (int i = 0; i < 32; ++i) v[i] = uint32_t{1} << (31 - i);
    return result;
  }
  const Direction& d = kDirections[dimension - 1];
  for (int i = 0; i < 32; ++i) {
    if (i < d.degree) {
      v[i] = d.first[i] << (31 - i);
      continue;
    }
    v[i] = v[i - d.degree] ^ (v[i - d.degree] >> d.degree);
    for (int k = 1; k < d.degree; ++k) {
      if ((d.coefficients >> (d.degree - 1 - k)) & 1) v[i] ^= v[i - k];
    }
  }
  return result;
}

}  // namespace

uint32_t SobolBits(uint32_t index, int dimension) {
  const Directions directions = DirectionsOf(dimension);
  const uint32_t gray = index ^ (index >> 1);
  uint32_t bits = 0;
  for (int i = 0; i < 32; ++i) {
    if ((gray >> i) & 1) bits ^= directions.v[i];
  }
  return bits;
}

}  // namespace tutti::flow
