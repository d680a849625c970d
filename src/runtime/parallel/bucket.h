// Bucket is flat memory for a run of parameters. The model's parameters are views of `values`,
// their .grad are views of `gradients`; autograd accumulates in place, the all-reduce and the
// optimizer run over the flat memory. Nothing is copied in between.
//
//   values     | layer4.conv2 ..| layer4.bn2 |pad| ...        |
//   gradients  | layer4.conv2 ..| layer4.bn2 |pad| ...        | tail |
//
// Each parameter begins on a 64-byte boundary; the padding is zero and stays so. Four-dimensional
// parameters lie channels-last. `tail` is a few more elements that are reduced along with the
// gradients: what ranks tell each other at no extra message.
//
// Thread-compatible: between a bucket's last gradient and the end of its all-reduce the
// communication thread alone touches it.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"

namespace tutti::parallel {

struct NamedParameter {
  std::string name;
  torch::Tensor tensor;
};

// A tensor of that many zeros, for what is reduced: memory that the ranks of a node share, say.
using GradientMemory = std::function<torch::Tensor(int64_t elements, torch::TensorOptions like)>;
torch::Tensor OwnMemory(int64_t elements, torch::TensorOptions like);
// Where the ranks of a node reduce from each other's gradients without a copy. When the group has
// none to give, plain memory is only slower.
GradientMemory SharedWithNode(comm::Communicator& communicator);

class Bucket {
 public:
  struct Slot {
    std::string name;
    torch::Tensor parameter;
    int64_t offset;  // in elements
  };

  // Moves the parameters' memory into the bucket. All of one floating type, on one device.
  Bucket(const std::vector<NamedParameter>& parameters, int64_t tail_elements,
         const GradientMemory& memory = OwnMemory);

  const std::vector<Slot>& slots() const { return slots_; }
  int64_t size() const { return values_.numel(); }  // elements, padding included
  torch::Tensor& values() { return values_; }       // [size]
  torch::Tensor gradients() const { return reduced_.narrow(0, 0, values_.numel()); }
  torch::Tensor tail() const;                    // [tail_elements]
  torch::Tensor& reduced() { return reduced_; }  // gradients, then tail

  // What the optimizer does beside its step on a GPU: `copy` [size], if there is one, gets the
  // values in its own type; where `found_nonfinite`, one element, is not 0, nothing is updated.
  torch::Tensor copy, found_nonfinite;

  // Returns the part of `flat` ([size], say a momentum) that belongs to the slot, in the
  // parameter's shape.
  static torch::Tensor View(const torch::Tensor& flat, const Slot& slot);

 private:
  std::vector<Slot> slots_;
  torch::Tensor values_;
  torch::Tensor reduced_;
};

using Buckets = std::vector<std::unique_ptr<Bucket>>;

// Returns which parameters share a bucket, as indices into `bytes` (sizes in the order of the
// parameters). Buckets and their members run from the last parameter to the first, about the order
// in which backward yields gradients. A bucket is closed when it would pass its cap (`first_cap`
// for the first, so that communication begins early); a larger parameter is alone in its bucket.
std::vector<std::vector<size_t>> PlanBuckets(const std::vector<size_t>& bytes, size_t first_cap,
                                             size_t cap);

}  // namespace tutti::parallel
