// Finds the layers of a bucket, for optimizers with a step for each that is in proportion to its
// weights: LARS (lars.h) and LAMB (lamb.h).
//
// A layer is a weight (IsWeight). The others, biases, norms, positions, are spared
// (Decay::kWeights): their ratio is 1, and they do not decay. It is also 1 where the norm of the
// weights or of what they are moved by is 0. Nothing waits for a norm. Thread-compatible.
#pragma once

#include <vector>

#include "runtime/parallel/optimizer.h"
#include "runtime/train/optimizer/parameter_range.h"

namespace tutti::train {

// The layers of a bucket, each a range that decays; what is spared lies in ranges between
// them.
class Layers {
 public:
  explicit Layers(const parallel::Bucket& bucket);

  const std::vector<ParameterRange>& ranges() const { return ranges_; }
  // Returns the norm of each range of a tensor [size], in fp64, on the tensor's device.
  torch::Tensor Norms(const torch::Tensor& flat) const;
  // Returns the ratios of the layers; 1 for what is spared, and where one of the two norms, given
  // as Norms gives them, is 0.
  torch::Tensor Ratios(const torch::Tensor& ratios, const torch::Tensor& values,
                       const torch::Tensor& updates) const;
  // Returns `decay` for layers, 0 for what is spared; one a range.
  torch::Tensor Decays(double decay) const;
  // Spreads one value a range to one an element, [size], in the bucket's type. The first call looks
  // up, for all others, which range each element is of.
  torch::Tensor Spread(const torch::Tensor& each);

 private:
  torch::ScalarType type_;
  std::vector<ParameterRange> ranges_;
  std::vector<int64_t> sizes_;
  torch::Tensor are_layers_;  // [ranges], where the bucket is
  torch::Tensor range_of_;    // [size] int32: each element's
};

std::vector<Layers> LayersOf(const parallel::Buckets& buckets);
std::vector<std::vector<ParameterRange>> ParameterRangesOf(const std::vector<Layers>& layers);

}  // namespace tutti::train
