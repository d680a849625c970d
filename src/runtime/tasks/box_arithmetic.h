// Does the arithmetic of boxes, in parts of an image's sides. `corners` are left, top, right,
// bottom; `centred` are centre x, y, width, height. All fp32 or fp64, on the CPU. Pure functions.
#pragma once

#include <torch/types.h>

namespace tutti::tasks {

torch::Tensor ToCorners(const torch::Tensor& centred);  // [n, 4] both

// Returns the intersection over union, [n, m], of corners [n, 4] and [m, 4].
torch::Tensor Overlaps(const torch::Tensor& a, const torch::Tensor& b);

// Returns how default boxes (centred) become others (corners), [n, 4] each: shifts in tenths of the
// default box's sides, logarithms of the sides' ratios in fifths (Girshick et al. 2014, appendix C,
// with SSD's variances).
torch::Tensor Moves(const torch::Tensor& defaults, const torch::Tensor& corners);
torch::Tensor Moved(const torch::Tensor& defaults, const torch::Tensor& moves);

// Returns for each of the default boxes the index of its object, or -1: the object that it overlaps
// most, by at least `least`; and whatever it overlaps, an object keeps the default box that is its
// best. [A] int64, of objects (corners) [m, 4], m >= 0.
torch::Tensor Match(const torch::Tensor& defaults, const torch::Tensor& objects, double least);

// Does greedy suppression: of boxes (corners) in the order given, those that no earlier one that
// stayed overlaps by more than `most`. Indices, int64.
torch::Tensor Distinct(const torch::Tensor& corners, double most);

}  // namespace tutti::tasks
