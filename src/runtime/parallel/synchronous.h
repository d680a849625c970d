// Synchronous is what the strategies have in common whose ranks meet in every step: a rank holds a
// model, or a part of one, in flat memory; a step finds the gradients of the whole mini-batch and,
// where all ranks can, clips and updates. Derived classes say how gradients are found.
// Thread-compatible.
#pragma once

#include <torch/types.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "runtime/parallel/flat_model.h"
#include "runtime/parallel/optimizer.h"
#include "runtime/parallel/strategy.h"

namespace tutti::parallel {

class Synchronous : public Strategy {
 public:
  const Layout& layout() const final { return layout_; }
  const models::Model& model() const final { return model_; }
  const Buckets& buckets() const final { return buckets_; }
  State state() override;
  absl::Status Synchronize(base::Deadline deadline) override;
  absl::StatusOr<StepResult> Step(const Batch& batch, double learning_rate,
                                  base::Deadline deadline) final;
  void SwapWeights() final;
  void RequestStop() final { stop_requested_ = true; }

 protected:
  // How the model lies in memory: see FlattenParameters. `told`: what ranks tell each other behind
  // the floating buffers in the first bucket's tail, in elements.
  struct Flat {
    size_t bucket_bytes = 0;
    int64_t told = 0;
    GradientMemory memory = OwnMemory;
  };
  Synchronous(Layout layout, models::Model model, const Flat& flat);
  // Ends a derived class's constructor; without a factory there are no updates.
  void Finish(const OptimizerFactory& factory, double clip_norm);

  // Leaves the mean of the gradients over the whole mini-batch in the buckets, on every rank of it,
  // or fails on every rank.
  virtual absl::StatusOr<StepResult> Gradients(const Batch& batch) = 0;
  // Returns the squared norms of the gradients of the whole model, by parameter.
  virtual torch::Tensor Squares() const { return SquaredNorms(*model_); }
  // Returns an error of a step or a prediction as the user gets it.
  virtual absl::Status Explained(const absl::Status& status) { return status; }
  virtual comm::Stream& replicas() = 0;  // those that hold what this one holds

  bool stop_requested() const { return stop_requested_; }
  const torch::Tensor& buffers() const { return buffers_; }

  base::Deadline deadline_ = base::Deadline::After(absl::ZeroDuration());  // of the current step

 private:
  const Layout layout_;
  const models::Model model_;
  const torch::Tensor buffers_;  // every floating buffer of the model is a view of it
  const Buckets buckets_;
  std::unique_ptr<Optimizer> optimizer_;
  double clip_norm_ = 0;
  std::atomic<bool> stop_requested_ = false;
};

}  // namespace tutti::parallel
