// Computes random numbers from a seed and a place (trial, dimension, draw): no state, the same on
// every machine. Pure functions.
#pragma once

#include <cstdint>

namespace tutti::flow {

// Returns SplitMix64's mixing (Steele, Lea and Flood 2014).
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Returns 64 bits for the draw `draw` of dimension `dimension` of trial `number`.
inline uint64_t BitsAt(uint64_t seed, uint64_t number, uint64_t dimension, uint64_t draw = 0) {
  return Mix(Mix(Mix(Mix(seed) ^ number) ^ dimension) ^ draw);
}

// Maps bits to a number in (0, 1), never one of the ends.
inline double UnitOfBits(uint64_t bits) {
  return (static_cast<double>(bits >> 12) + 0.5) / 4503599627370496.0;  // 2^52
}

inline double UniformAt(uint64_t seed, uint64_t number, uint64_t dimension, uint64_t draw = 0) {
  return UnitOfBits(BitsAt(seed, number, dimension, draw));
}

}  // namespace tutti::flow
