// AdasumAllReduce reduces by Adasum (S. Maleki et al.: "Scaling Distributed Training with Adaptive
// Summation", MLSys 2021). Maleki et al.: "Scaling Distributed Training with Adaptive Summation",
// MLSys 2021).
//
// Two vectors are added after each has given up half of its projection on the other:
//
//   Adasum(a, b) = (1 - a.b / 2a.a) a + (1 - a.b / 2b.b) b
//
// and 2^k of them as a tree: Adasum of the lower half's and the upper half's. The tree is climbed
// by recursive vector halving and distance doubling (the paper's algorithm 1). At distance d = 1,
// 2, 4, ... a rank and its partner hold the same piece of two vectors a and b (a is the lower
// ranks') and exchange halves of it, so that each has a half of both. The dot products of the whole
// vectors are the sums over the 2d ranks that hold their pieces: an all-reduce of three numbers
// among them. Then each combines its half. At the end the halves are exchanged back in reverse
// order.
//
// The dot products are of doubles, in an order that depends on the sizes alone; the combination is
// calculated in doubles and rounded to the type once per level. A vector without length (a.a below
// the square root of the least double) gives up nothing. Ranks beyond the largest power of two are
// combined with a partner first.
#pragma once

#include <cstddef>

#include "runtime/comm/collective/links.h"
#include "runtime/comm/data_type.h"

namespace tutti::comm {

// Reduces in place; `type` is of floating point.
absl::Status AdasumAllReduce(Links& links, std::byte* data, size_t count, DataType type,
                             base::Deadline deadline);

// Combines two vectors of one process; the result is in `a`.
void Adasum(std::byte* a, const std::byte* b, size_t count, DataType type);

}  // namespace tutti::comm
