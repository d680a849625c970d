// Kernels chooses among the versions of a kernel of this room that is written with AVX2's
// intrinsics, or of which tests compare all versions: compiled for any processor and for AVX2
// (longer vectors gain them nothing). For other loops base::Vectorised does it.
//
//   TUTTI_INLINE void Add(Values& values) { … }
//   void AddPlain(Values& values) { Add(values); }
//   TUTTI_AVX2_CODE void AddAvx2(Values& values) { Add(values); }
//   constexpr Kernels<void(Values&)> kAdd = {AddPlain, AddAvx2};
//
// What they call has to be TUTTI_INLINE, else it is compiled for the narrowest. Code with AVX2's
// intrinsics stands between TUTTI_BEGIN_AVX2_CODE and TUTTI_END_AVX2_CODE, which hold for templates
// and for headers that are included between them, too: those may define nothing but templates and
// TUTTI_INLINE functions.
//
// All versions give the same bits (floating point in a fixed order, without contraction); tests get
// each by For() and compare.
#pragma once

#include "base/machine/instruction_set.h"
#include "base/machine/vector_width.h"

#if defined(__x86_64__)
#define TUTTI_AVX2_CODE __attribute__((target("arch=x86-64-v3")))
#else
#define TUTTI_AVX2_CODE
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

  // The processor must have `set`.
  constexpr Function* For(base::InstructionSet set) const {
    return base::For(set, avx2, avx2, plain);
  }
  Function* Usable() const { return For(base::UsableInstructionSet()); }
};

}  // namespace tutti::data
