#include "runtime/comm/data_type.h"

namespace tutti::comm {
namespace {

// Names a value. It may be any number, since peers send such values too.
template <typename Value, size_t kCount>
const char* NameIn(const char* const (&names)[kCount], Value value) {
  const size_t index = static_cast<size_t>(value);
  return index < kCount ? names[index] : "something unknown";
}

}  // namespace

size_t SizeOf(DataType type) {
  switch (type) {
    case DataType::kFloat64:
    case DataType::kInt64:
      return 8;
    case DataType::kFloat32:
    case DataType::kInt32:
      return 4;
    case DataType::kFloat16:
    case DataType::kBFloat16:
    case DataType::kInt16:
      return 2;
    case DataType::kInt8:
    case DataType::kUint8:
    case DataType::kBool:
      return 1;
  }
  return 0;
}

const char* NameOf(DataType type) {
  constexpr const char* kNames[] = {"float64", "float32", "float16", "bfloat16", "int64",
                                    "int32",   "int16",   "int8",    "uint8",    "bool"};
  return NameIn(kNames, type);
}

const char* NameOf(ReduceOp op) {
  constexpr const char* kNames[] = {"sum", "mean", "min", "max", "product", "Adasum"};
  return NameIn(kNames, op);
}

}  // namespace tutti::comm
