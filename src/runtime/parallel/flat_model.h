// Moves a model's memory into few flat runs, which are reduced, updated and sent as wholes.
//
//   trained parameters, with gradients   -> buckets (bucket.h)
//   floating buffers (running statistics)-> one tensor of which they become views
//   frozen parameters, integer buffers   -> stay as they are
//
// Not thread-safe; the model must not be replaced or converted afterwards.
#pragma once

#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/models/model.h"
#include "runtime/parallel/bucket.h"
#include "runtime/parallel/state_tensor.h"

namespace tutti::parallel {

// Returns all floating buffers as views of the tensor that is returned ([elements], of the
// parameters' type, on their device).
torch::Tensor FlattenBuffers(const models::Model& model);

// How many bytes a bucket may have; the first is small, so that communication begins early.
struct BucketCaps {
  size_t first, others;
};

// Returns those of a model of so many bytes: an eighth of it, between 64 KiB and 25 MiB.
BucketCaps UsualBucketCaps(size_t model_bytes);

// Flattens them; `bucket_bytes` 0: by UsualBucketCaps. The first
// bucket gets a tail of `tail_elements`. Gradients and tail lie in `memory`.
std::vector<std::unique_ptr<Bucket>> FlattenParameters(const models::Model& model,
                                                       size_t bucket_bytes, int64_t tail_elements,
                                                       const GradientMemory& memory);

// Adds the parameters' parts of `flat`, a tensor [size] for each bucket, as "<prefix><name>".
void AddByName(const std::string& prefix, const Buckets& buckets,
               const std::vector<torch::Tensor>& flat, State& state);

// Returns the first parameter whose gradient holds an infinity or NaN; "" when all are finite. One
// pass.
std::string FirstNotFinite(const std::vector<std::unique_ptr<Bucket>>& buckets);

// Returns the error about it.
absl::Status NotFinite(const std::string& parameter);

// Returns the squared norm of the gradient of each trained parameter, in the model's order: fp64,
// where the gradients lie.
torch::Tensor SquaredNorms(const models::ModelImpl& model);
// Clips by the global norm (Pascanu et al. 2013): where the root of the sum of `squares`, those of
// the whole model, is above `most`, all gradients are scaled to it, as by torch's clip_grad_norm_.
void ScaleToNorm(const std::vector<std::unique_ptr<Bucket>>& buckets, const torch::Tensor& squares,
                 double most);

}  // namespace tutti::parallel
