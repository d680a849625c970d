// Makes data for every type and operation, for this room's tests, and their reduction, calculated
// rank after rank by one thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/comm/collective/reduction/half.h"
#include "runtime/comm/data_type.h"

namespace tutti::comm {

using ByteVector = std::vector<std::byte>;

inline constexpr DataType kTypes[] = {DataType::kFloat64,  DataType::kFloat32, DataType::kFloat16,
                                      DataType::kBFloat16, DataType::kInt64,   DataType::kInt32,
                                      DataType::kInt16,    DataType::kInt8,    DataType::kUint8,
                                      DataType::kBool};
// All but Adasum, which has its own test.
inline constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax,
                                    ReduceOp::kProduct};

inline bool Exists(DataType type, ReduceOp op) {
  return type != DataType::kBool || op != ReduceOp::kMean;
}

inline void Put(DataType type, std::byte* at, double value) {
  const auto put = [&](auto stored) { std::memcpy(at, &stored, sizeof(stored)); };
  switch (type) {
    case DataType::kFloat64:
      return put(value);
    case DataType::kFloat32:
      return put(static_cast<float>(value));
    case DataType::kFloat16:
      return put(FloatToHalf(static_cast<float>(value)));
    case DataType::kBFloat16:
      return put(FloatToBFloat16(static_cast<float>(value)));
    case DataType::kInt64:
      return put(static_cast<int64_t>(value));
    case DataType::kInt32:
      return put(static_cast<int32_t>(value));
    case DataType::kInt16:
      return put(static_cast<int16_t>(value));
    case DataType::kInt8:
      return put(static_cast<int8_t>(value));
    case DataType::kUint8:
      return put(static_cast<uint8_t>(value));
    case DataType::kBool:
      return put(static_cast<uint8_t>(value != 0));
  }
}

inline double Get(DataType type, const std::byte* at) {
  const auto get = [&](auto stored) {
    std::memcpy(&stored, at, sizeof(stored));
    return stored;
  };
  switch (type) {
    case DataType::kFloat64:
      return get(double());
    case DataType::kFloat32:
      return static_cast<double>(get(float()));
    case DataType::kFloat16:
      return static_cast<double>(HalfToFloat(get(uint16_t())));
    case DataType::kBFloat16:
      return static_cast<double>(BFloat16ToFloat(get(uint16_t())));
    default:
      return 0;
  }
}

// Returns small whole numbers, so that every type holds every result exactly, in whatever order it
// adds; few factors but 1.
inline int Value(int rank, size_t i, DataType type, ReduceOp op) {
  const int value = static_cast<int>((i * 7 + static_cast<size_t>(rank) * 13 + i / 5) % 11);
  if (type == DataType::kBool) return value % 4;
  return op == ReduceOp::kProduct ? (value % 4 == 0 ? 2 : 1) : value;
}

// Values repeat after so many: 55 * 7 + 55 / 5 is a multiple of 11.
inline constexpr size_t kPeriod = 55;

// Repeats the first period to the end.
inline void RepeatPeriod(ByteVector& data, DataType type) {
  for (size_t done = kPeriod * SizeOf(type); done < data.size(); done *= 2) {
    std::memcpy(data.data() + done, data.data(), std::min(done, data.size() - done));
  }
}

inline ByteVector Input(int rank, size_t count, DataType type, ReduceOp op) {
  ByteVector data(count * SizeOf(type));
  for (size_t i = 0; i < std::min(count, kPeriod); ++i) {
    Put(type, data.data() + i * SizeOf(type), Value(rank, i, type, op));
  }
  RepeatPeriod(data, type);
  return data;
}

inline ByteVector Expected(int size, size_t count, DataType type, ReduceOp op) {
  ByteVector data(count * SizeOf(type));
  for (size_t i = 0; i < std::min(count, kPeriod); ++i) {
    double result = Value(0, i, type, op);
    for (int rank = 1; rank < size; ++rank) {
      const double value = Value(rank, i, type, op);
      if (op == ReduceOp::kSum || op == ReduceOp::kMean) result += value;
      if (op == ReduceOp::kMin) result = std::min(result, value);
      if (op == ReduceOp::kMax) result = std::max(result, value);
      if (op == ReduceOp::kProduct) result *= value;
    }
    if (op == ReduceOp::kMean) {
      result = IsFloatingPoint(type) ? result / size : std::trunc(result / size);
    }
    Put(type, data.data() + i * SizeOf(type), result);
  }
  RepeatPeriod(data, type);
  return data;
}

// Returns bytes that tell the rank and the place.
inline ByteVector Pattern(int rank, size_t bytes) {
  return Input(rank, bytes, DataType::kUint8, ReduceOp::kSum);
}

}  // namespace tutti::comm
