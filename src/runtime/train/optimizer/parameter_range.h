// Finds the neighbours in a bucket that an optimizer updates alike. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/parallel/optimizer.h"

namespace tutti::train {

// What weight decay is for: all parameters, or weights alone (IsWeight).
enum class Decay { kAll, kWeights };

// Returns whether a parameter multiplies activations and mixes their channels: it has two
// dimensions and more, so it is neither a bias nor of a norm (Jia et al. 2018, section 3.2), and it
// is no class token and no embedding of positions.
bool IsWeight(const parallel::Bucket::Slot& slot);

// A range of neighbouring elements of a bucket that are updated alike: [begin, end), in elements.
struct ParameterRange {
  int64_t begin = 0, end = 0;
  bool decays = true;
};
std::vector<ParameterRange> ParameterRangesOf(const parallel::Bucket& bucket, Decay decay);

// Returns the ranges of each bucket.
std::vector<std::vector<ParameterRange>> ParameterRangesOf(const parallel::Buckets& buckets,
                                                           Decay decay);

}  // namespace tutti::train
