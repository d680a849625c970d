#include "runtime/comm/negotiation/execution/scale.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/machine/copy_bytes.h"
#include "runtime/comm/collective/reduction/element.h"

namespace tutti::comm {
namespace {

template <typename Visitor>
void WithElement(DataType type, const Visitor& visit) {
  switch (type) {
    case DataType::kFloat64:
      return visit(Plain<double>());
    case DataType::kFloat32:
      return visit(Plain<float>());
    case DataType::kFloat16:
      return visit(Float16());
    case DataType::kBFloat16:
      return visit(BFloat16());
    case DataType::kInt64:
      return visit(Plain<int64_t>());
    case DataType::kInt32:
      return visit(Plain<int32_t>());
    case DataType::kInt16:
      return visit(Plain<int16_t>());
    case DataType::kInt8:
      return visit(Plain<int8_t>());
    case DataType::kUint8:
      return visit(Plain<uint8_t>());
    case DataType::kBool:
      return visit(Bool());
  }
}

template <typename Value>
Value Scaled(Value value, double factor) {
  if constexpr (std::is_floating_point_v<Value>) {
    return value * static_cast<Value>(factor);
  } else {
    const double scaled = static_cast<double>(value) * factor;
    // The bounds as doubles may lie beyond the type's: 2^63 is no int64.
    if (!(scaled > static_cast<double>(std::numeric_limits<Value>::min()))) {
      return std::isnan(scaled) ? Value{0} : std::numeric_limits<Value>::min();
    }
    if (scaled >= static_cast<double>(std::numeric_limits<Value>::max())) {
      return std::numeric_limits<Value>::max();
    }
    return static_cast<Value>(scaled);
  }
}

template <typename Value>
Value Neutral(ReduceOp op) {
  using Limits = std::numeric_limits<Value>;
  if (op == ReduceOp::kProduct) return Value{1};
  if (op == ReduceOp::kMin) return Limits::has_infinity ? Limits::infinity() : Limits::max();
  if (op == ReduceOp::kMax) return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  return Value{0};
}

}  // namespace

void CopyScaled(const void* from, void* to, size_t count, DataType type, double factor) {
  if (factor == 1 || type == DataType::kBool) {
    if (from != to) base::CopyBytes(to, from, count * SizeOf(type));
    return;
  }
  WithElement(type, [&](auto element) {
    using Element = decltype(element);
    const auto* const source = static_cast<const typename Element::Stored*>(from);
    auto* const target = static_cast<typename Element::Stored*>(to);
    for (size_t i = 0; i < count; ++i) {
      target[i] = Element::Store(Scaled(Element::Load(source[i]), factor));
    }
  });
}

void FillNeutral(void* data, size_t count, DataType type, ReduceOp op) {
  WithElement(type, [&](auto element) {
    using Element = decltype(element);
    auto* const target = static_cast<typename Element::Stored*>(data);
    const bool is_bool = std::is_same_v<Element, Bool>;
    const auto value = is_bool ? static_cast<typename Element::Value>(op == ReduceOp::kProduct ||
                                                                      op == ReduceOp::kMin)
                               : Neutral<typename Element::Value>(op);
    std::fill_n(target, count, Element::Store(value));
  });
}

}  // namespace tutti::comm
