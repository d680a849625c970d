// Defines the types of elements that collectives reduce, and the operations on them.
#pragma once

#include <cstddef>

namespace tutti::comm {

enum class DataType {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUint8,
  kBool,  // one byte; every value but 0 is true
};

// Floating point of 16 bits is added in 32 bits; integers wrap around, and their mean is the sum
// divided toward zero. Of bools, sum and maximum are "or", product and minimum are "and" (as MPI's
// logical operators), and there is no mean.
//
// kAdasum, of floating point alone (S. Maleki et al.: "Scaling Distributed Training with Adaptive
// Summation", MLSys 2021): of two vectors, each without half of what it shares with the other,
// a (1 - a.b / 2a.a) + b (1 - a.b / 2b.b): their sum where they are orthogonal, their mean where
// they are equal. One call is one vector. Ranks beyond a power of two fold in first.
enum class ReduceOp { kSum, kMean, kMin, kMax, kProduct, kAdasum };

// Returns the size of an element in bytes.
size_t SizeOf(DataType type);

inline bool IsFloatingPoint(DataType type) {
  return type == DataType::kFloat64 || type == DataType::kFloat32 || type == DataType::kFloat16 ||
         type == DataType::kBFloat16;
}

// Returns "float32", "sum"; "something unknown" for a number that is none of them.
const char* NameOf(DataType type);
const char* NameOf(ReduceOp op);

}  // namespace tutti::comm
