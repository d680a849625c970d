// Declares the kernel of resample_kernel.h for AVX2.
#pragma once

#include "runtime/data/augment/resample_kernel.h"

namespace tutti::data {

void ResizeABandAvx2(const ResizeBand& band);  // the processor must have AVX2

}  // namespace tutti::data
