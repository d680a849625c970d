// Defines what each operation of a reduction does with two elements.
#pragma once

#include <cstdint>
#include <type_traits>

#include "runtime/comm/collective/reduction/element.h"
#include "runtime/comm/collective/reduction/reduce.h"

// Before a loop whose stores are never what a later turn of it loads.
#if defined(__GNUC__) && !defined(__clang__)
#define TUTTI_INDEPENDENT_TURNS _Pragma("GCC ivdep")
#else
#define TUTTI_INDEPENDENT_TURNS
#endif

namespace tutti::comm {

// Unsigned arithmetic wraps around and has the same bits; in 8 bits the compiler would widen.
template <typename T, bool = std::is_integral_v<T>>
struct Wrapping {
  using Type = std::make_unsigned_t<T>;
};
template <typename T>
struct Wrapping<T, false> {
  using Type = T;
};

// Products of 16 bits would be calculated in int, and could overflow.
template <>
struct Wrapping<int16_t, true> {
  using Type = unsigned;
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

// Divides a sum over `ranks` ranks by their number. Integers are divided as int or wider, toward
// zero: there may be more ranks than the type can count.
template <typename T>
TUTTI_INLINE T MeanOf(T sum, int ranks) {
  using Divisor = std::conditional_t<std::is_integral_v<T>, int, T>;
  return static_cast<T>(sum / static_cast<Divisor>(ranks));
}

// Returns the reduction of truth values: "or" is the maximum of 0 and 1, "and" their minimum.
inline Reduction Logical(const Reduction& reduction) {
  const bool either = reduction.op == ReduceOp::kSum || reduction.op == ReduceOp::kMax;
  return {reduction.type, either ? ReduceOp::kMax : ReduceOp::kMin, reduction.ranks};
}

}  // namespace tutti::comm
