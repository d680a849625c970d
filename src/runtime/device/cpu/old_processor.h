// Prepares libtorch for processors that lack what its kernels for the CPU take for granted.
#pragma once

#include "absl/status/status.h"

namespace tutti::device::cpu {

// Call it before anything is computed on the CPU.
//
// FailedPrecondition on x86 without SSE4.1, of before 2008: oneDNN, by which libtorch convolves,
// has nothing for it and would end the first step with "could not create a primitive". Without AVX2
// NNPACK is left out, which would say at every convolution that it does not start.
absl::Status PrepareOldProcessor();

}  // namespace tutti::device::cpu
