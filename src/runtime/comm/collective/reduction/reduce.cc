#include "runtime/comm/collective/reduction/reduce.h"

#include <cstring>

#include "runtime/comm/collective/reduction/element.h"
#include "runtime/comm/collective/reduction/reduce_operation.h"

namespace tutti::comm {
namespace {

struct SumThenDivide {
  int ranks;
  template <typename T>
  TUTTI_INLINE T operator()(T a, T b) const {
    return MeanOf(Sum()(a, b), ranks);
  }
};

template <typename Element, typename Op>
TUTTI_INLINE void Loop(std::byte* __restrict accumulator, const std::byte* __restrict incoming,
                       size_t count, Op op) {
  using Stored = typename Element::Stored;
  for (size_t i = 0; i < count; ++i) {
    Stored a, b;
    std::memcpy(&a, incoming + i * sizeof(Stored), sizeof(Stored));
    std::memcpy(&b, accumulator + i * sizeof(Stored), sizeof(Stored));
    const Stored result = Element::Store(op(Element::Load(a), Element::Load(b)));
    std::memcpy(accumulator + i * sizeof(Stored), &result, sizeof(Stored));
  }
}

template <typename Element>
TUTTI_INLINE void ApplyOp(const Reduction& reduction, std::byte* accumulator,
                          const std::byte* incoming, size_t count, bool last) {
  switch (reduction.op) {
    case ReduceOp::kMean:
      if (last) {
        return Loop<Element>(accumulator, incoming, count, SumThenDivide{reduction.ranks});
      }
      [[fallthrough]];
    case ReduceOp::kSum:
      return Loop<Element>(accumulator, incoming, count, Sum());
    case ReduceOp::kMin:
      return Loop<Element>(accumulator, incoming, count, Min());
    case ReduceOp::kMax:
      return Loop<Element>(accumulator, incoming, count, Max());
    case ReduceOp::kProduct:
      return Loop<Element>(accumulator, incoming, count, Product());
    case ReduceOp::kAdasum:  // not element by element: adasum.h
      return;
  }
}

TUTTI_INLINE void ApplyType(const Reduction& reduction, std::byte* a, const std::byte* b, size_t n,
                            bool last) {
  switch (reduction.type) {
    case DataType::kFloat64:
      return ApplyOp<Plain<double>>(reduction, a, b, n, last);
    case DataType::kFloat32:
      return ApplyOp<Plain<float>>(reduction, a, b, n, last);
    case DataType::kFloat16:
      return ApplyOp<Float16>(reduction, a, b, n, last);
    case DataType::kBFloat16:
      return ApplyOp<BFloat16>(reduction, a, b, n, last);
    case DataType::kInt64:
      return ApplyOp<Plain<int64_t>>(reduction, a, b, n, last);
    case DataType::kInt32:
      return ApplyOp<Plain<int32_t>>(reduction, a, b, n, last);
    case DataType::kInt16:
      return ApplyOp<Plain<int16_t>>(reduction, a, b, n, last);
    case DataType::kInt8:
      return ApplyOp<Plain<int8_t>>(reduction, a, b, n, last);
    case DataType::kUint8:
      return ApplyOp<Plain<uint8_t>>(reduction, a, b, n, last);
    case DataType::kBool:
      return ApplyOp<Bool>(Logical(reduction), a, b, n, last);
  }
}

}  // namespace

void Reduction::Apply(void* accumulator, const void* incoming, size_t count, bool last) const {
  base::Vectorised([&]() TUTTI_INLINE_BODY {
    ApplyType(*this, static_cast<std::byte*>(accumulator), static_cast<const std::byte*>(incoming),
              count, last);
  });
}

}  // namespace tutti::comm
