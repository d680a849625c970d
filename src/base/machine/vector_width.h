// Compiles a piece of code once for each InstructionSet and calls the version that this process
// uses:
//
//   base::Vectorised([&]() TUTTI_INLINE_BODY { Update(values, gradients, count); });
//
// Functions that the body calls have to be TUTTI_INLINE, else they are compiled for the narrowest.
#pragma once

#include "base/machine/instruction_set.h"

#define TUTTI_INLINE inline __attribute__((always_inline))
#define TUTTI_INLINE_BODY __attribute__((always_inline))
// Vectors are passed between inlined functions only.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace tutti::base {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
template <typename Body>
__attribute__((target("arch=x86-64-v4"))) auto VectorisedForAvx512(const Body& body) {
  return body();
}
template <typename Body>
__attribute__((target("arch=x86-64-v3"))) auto VectorisedForAvx2(const Body& body) {
  return body();
}
#endif

// Returns what `body` does.
template <typename Body>
auto Vectorised(const Body& body) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  switch (UsableInstructionSet()) {
    case InstructionSet::kAvx512:
      return VectorisedForAvx512(body);
    case InstructionSet::kAvx2:
      return VectorisedForAvx2(body);
    case InstructionSet::kPlain:
      break;
  }
#endif
  return body();
}

}  // namespace tutti::base
