// A kernel of this room is compiled for each set of instructions that base/instruction_set.h knows,
// and the one that this process may use is called:
//
//   TUTTI_INLINE void Add(Values& values) { … }
//   void AddPlain(Values& values) { Add(values); }
//   TUTTI_AVX2_CODE void AddAvx2(Values& values) { Add(values); }
//   TUTTI_AVX512_CODE void AddAvx512(Values& values) { Add(values); }
//   constexpr Kernels<void(Values&)> kAdd = {AddPlain, AddAvx2, AddAvx512};
//
// What they call has to be TUTTI_INLINE, else it is compiled for the narrowest. Code with AVX2's
// intrinsics stands between TUTTI_BEGIN_AVX2_CODE and TUTTI_END_AVX2_CODE, which hold for templates
// and for headers that are included between them, too: those may define nothing but templates and
// TUTTI_INLINE functions.
//
// All versions give the same bits (floating point in a fixed order, without contraction); tests get
// each by For() and compare.
#pragma once

#include "base/instruction_set.h"
#include "base/vector_width.h"

#if defined(__x86_64__)
#define TUTTI_AVX2_CODE __attribute__((target("arch=x86-64-v3")))
#define TUTTI_AVX512_CODE __attribute__((target("arch=x86-64-v4")))
#else
#define TUTTI_AVX2_CODE
#define TUTTI_AVX512_CODE
#endif

#if defined(__clang__)
#define TUTTI_BEGIN_AVX2_CODE \
  _Pragma("clang attribute push(__attribute__((target(\"avx2\"))), apply_to = function)")
#define TUTTI_END_AVX2_CODE _Pragma("clang attribute pop")
#else
#define TUTTI_BEGIN_AVX2_CODE _Pragma("GCC push_options") _Pragma("GCC target(\"avx2\")")
#define TUTTI_END_AVX2_CODE _Pragma("GCC pop_options")
#endif

namespace tutti::data {

template <typename Function>
struct Kernels {
  Function* plain;
  Function* avx2;
  Function* avx512;

  // The processor must have `set`.
  constexpr Function* For(base::InstructionSet set) const {
    switch (set) {
      case base::InstructionSet::kAvx512:
        return avx512;
      case base::InstructionSet::kAvx2:
        return avx2;
      case base::InstructionSet::kPlain:
        break;
    }
    return plain;
  }
  Function* Usable() const { return For(base::UsableInstructionSet()); }
};

}  // namespace tutti::data
