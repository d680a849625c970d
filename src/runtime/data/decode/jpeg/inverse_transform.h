// Computes the inverse cosine transform of blocks, to samples at 1/1, 1/2, 1/4 or 1/8 of their
// size: with the integers of Loeffler, Ligtenberg and Moschytz's algorithm as libjpeg's "islow" and
// its reduced sizes have them, so that the samples are libjpeg-turbo's bit for bit. That holds for
// coefficients that no image has, too, where libjpeg-turbo computes with x86's vectors of 16 bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/data/instruction_kernels.h"

namespace tutti::data {

// `blocks` blocks of 64 coefficients each, in rows, that lie beside one another; coefficients are
// multiplied by those of `steps`. Each makes size x size samples (8, 4, 2 or 1), in rows that are
// `stride` bytes apart.
using BlockTransform = void(const int16_t* coefficients, int blocks, const uint16_t* steps,
                            int size, uint8_t* samples, size_t stride);
extern const Kernels<BlockTransform> kInverseTransform;

}  // namespace tutti::data
