// Puts the convolutions of this folder in the place of oneDNN's, for whichever model computes in
// this process: libtorch's dispatcher asks them first, and they hand on what they do not take.
#pragma once

namespace tutti::device {

// Uses them from now on; may be called more than once. Nothing changes on processors without AVX2:
// see Takes() of bf16/convolution_bf16.h and CanCompute() of fp32/convolution_fp32.h.
void UseOwnConvolutions();

}  // namespace tutti::device
