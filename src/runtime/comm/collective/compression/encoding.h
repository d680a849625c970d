// Encodes fp32 values in fewer bits for the wire: the arithmetic of compression.h.
//
//   kFloat16, kBFloat16   2 bytes a value, rounded to nearest even
//   kInt8                 blocks of 256 values (the last one may be shorter), each a scale s in
//                         fp32 and a byte q a value, which stands for q s: | s | q q q ... |, 260
//                         bytes. s = max|x| / 127, q = x / s rounded to nearest even, so that the
//                         error of a value is at most max|x| / 254 of its own block (and rounding
//                         in fp32)
//
// A residual is what encoding loses; where one is given, it is added before and replaced after:
// encoded = encode(x + residual), residual = x + residual - decode(encoded).
//
// What is not finite shows on the other side: in 16 bits as itself (fp16: also what is beyond
// 65504, as infinity), in int8 as a whole block of NaN. Its residual becomes zero, so that it does
// not come back in later steps. An int8 block without a value above 2^-100 is sent as zeros.
//
// Compiled for several instruction sets; all of them give the same bits.
#pragma once

#include <cstddef>

namespace tutti::comm {

enum class Encoding { kFloat16, kBFloat16, kInt8 };

inline constexpr size_t kEncodingBlock = 256;  // values; to be cut at multiples of it

size_t EncodedBytes(Encoding encoding, size_t count);

// Encodes values; `residual` may be null, and `to` be of any alignment.
void Encode(Encoding encoding, const float* values, float* residual, size_t count, std::byte* to);

void Decode(Encoding encoding, const std::byte* from, size_t count, float* values);
// Adds to `values`.
void DecodeAndAdd(Encoding encoding, const std::byte* from, size_t count, float* values);

}  // namespace tutti::comm
