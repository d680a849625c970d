#include "runtime/comm/collective/reduce.h"

#include <bit>
#include <cstring>
#include <type_traits>

#include "runtime/comm/collective/half.h"

// One copy of the loops for each instruction set. The dynamic linker chooses, before a sanitizer's
// runtime has started: with one there is only the plain copy.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(__clang__) || \
    !defined(__x86_64__)
#define TUTTI_FOR_EVERY_CPU
#else
#define TUTTI_FOR_EVERY_CPU \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#define TUTTI_INLINE inline __attribute__((always_inline))

namespace tutti::comm {
namespace {

// How an element lies in memory (Stored) and what is calculated with (Value).
template <typename T>
struct Plain {
  using Stored = T;
  // Unsigned arithmetic wraps around and has the same bits; in 8 bits the compiler would widen.
  using Value = T;
  static TUTTI_INLINE Value Load(Stored stored) { return stored; }
  static TUTTI_INLINE Stored Store(Value value) { return value; }
};
struct BFloat16 {
  using Stored = uint16_t;
  using Value = float;
  static TUTTI_INLINE Value Load(Stored stored) { return BFloat16ToFloat(stored); }
  static TUTTI_INLINE Stored Store(Value value) { return FloatToBFloat16(value); }
};
struct Float16 {
  using Stored = uint16_t;
  using Value = float;
  static TUTTI_INLINE Value Load(Stored stored) { return HalfToFloat(stored); }
  static TUTTI_INLINE Stored Store(Value value) { return FloatToHalf(value); }
};

template <typename T, bool = std::is_integral_v<T>>
struct Wrapping {
  using Type = std::make_unsigned_t<T>;
};
template <typename T>
struct Wrapping<T, false> {
  using Type = T;
};

struct Sum {
  template <typename T>
  TUTTI_INLINE T operator()(T a, T b) const {
    using U = typename Wrapping<T>::Type;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  }
};
struct Product {
  template <typename T>
  TUTTI_INLINE T operator()(T a, T b) const {
    using U = typename Wrapping<T>::Type;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  }
};
struct Min {
  template <typename T>
  TUTTI_INLINE T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};
struct Max {
  template <typename T>
  TUTTI_INLINE T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct SumThenDivide {
  int ranks;
  template <typename T>
  TUTTI_INLINE T operator()(T a, T b) const {
    return static_cast<T>(Sum()(a, b) / static_cast<T>(ranks));
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
  }
}

TUTTI_FOR_EVERY_CPU
void ApplyType(const Reduction& reduction, std::byte* a, const std::byte* b, size_t n, bool last) {
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
    case DataType::kInt8:
      return ApplyOp<Plain<int8_t>>(reduction, a, b, n, last);
    case DataType::kUint8:
      return ApplyOp<Plain<uint8_t>>(reduction, a, b, n, last);
  }
}

}  // namespace

void Reduction::Apply(void* accumulator, const void* incoming, size_t count, bool last) const {
  ApplyType(*this, static_cast<std::byte*>(accumulator), static_cast<const std::byte*>(incoming),
            count, last);
}

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
      return 2;
    case DataType::kInt8:
    case DataType::kUint8:
      return 1;
  }
  return 0;
}

}  // namespace tutti::comm
