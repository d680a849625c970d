// Defines for each type of elements how it lies in memory (Stored) and what a reduction calculates
// with (Value).
#pragma once

#include <cstdint>

#include "base/machine/vector_width.h"
#include "runtime/comm/collective/reduction/half.h"

namespace tutti::comm {

template <typename T>
struct Plain {
  using Stored = T;
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
// 0 or 1 whatever came, so that maximum is "or" and minimum is "and".
struct Bool {
  using Stored = uint8_t;
  using Value = uint8_t;
  static TUTTI_INLINE Value Load(Stored stored) { return stored != 0 ? 1 : 0; }
  static TUTTI_INLINE Stored Store(Value value) { return value; }
};

}  // namespace tutti::comm
