// One machine-code version of a function per vector width, chosen when the program starts. What it
// calls has to be TUTTI_INLINE, else it is compiled for the narrowest.
#pragma once

// Sanitizers do not bear the resolvers that this takes.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TUTTI_FOR_EACH_VECTOR_WIDTH \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TUTTI_FOR_EACH_VECTOR_WIDTH
#endif
#define TUTTI_INLINE [[gnu::always_inline]] inline
// Vectors are passed between inlined functions only.
#pragma GCC diagnostic ignored "-Wpsabi"
