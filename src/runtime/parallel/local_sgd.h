// LocalSgd trains every rank by itself, with an optimizer of its own, and lets the ranks hear of
// each other every so many steps: local SGD (Stich 2019, arXiv 1805.09767), and DiLoCo with an
// outer optimizer (Douillard et al. 2023, arXiv 2311.08105), by fragments whose exchange goes on
// beside the next steps (Streaming DiLoCo, Douillard et al. 2025, arXiv 2501.18512).
//
// With p the outer parameters, the same on every rank, q a rank's own, v a velocity (zero at
// first), and `every`, `fragments` F and `delay` of an Exchange, for the buckets f, f + F, f + 2F,
// ... of each fragment f:
//
//   after steps t with t mod every = f every / F:   d = mean over the ranks of (p - q)
//   `delay` steps later:   v = momentum v + d;   p -= rate (d + momentum v);   q = p
//                          or, where there is a delay, q = mix q + (1 - mix) p
//
// What is rounded on its way is kept, and added to what goes next (error feedback). The run's last
// step is followed by an exchange of all fragments, without delay.
//
// A rank may be `every` steps ahead of another one: so many times as long as a step may take, it
// waits for an exchange.
//
// Evaluation, the saved model and checkpoints have p, and the mean of the ranks' running
// statistics. A rank's own parameters, statistics and optimizer are part of the run's state, as
// "rank2.<name>"; a run that goes on with more ranks begins the new ones from p and an empty
// optimizer. Settle ends an exchange that is under way, before its time.
//
// A step's result has this rank's samples, and where an exchange ends those of the others since the
// one before. Thread-compatible.
#pragma once

#include <torch/types.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/comm/collective/compression/compression.h"
#include "runtime/comm/stream.h"
#include "runtime/parallel/data_parallel.h"
#include "runtime/parallel/strategy.h"

namespace tutti::parallel {

struct LocalSgdOptions {
  DataParallelOptions inner;               // of a rank's own steps
  Exchange exchange;                       // every, fragments, delay, mix, rate, momentum
  std::optional<comm::Encoding> encoding;  // of differences; none: as they are. For fp32 alone
  int64_t last_step = 0;                   // of the run, which ends with an exchange; 0: not known
};

class LocalSgd final : public Strategy {
 public:
  // Takes the communicator. InvalidArgument: see CheckTrainable, and where the model has fewer
  // buckets than there are fragments.
  static absl::StatusOr<std::unique_ptr<LocalSgd>> Create(
      const models::Model& model, std::unique_ptr<comm::Communicator> communicator,
      LocalSgdOptions options);

  const Layout& layout() const override { return layout_; }
  const models::Model& model() const override { return inner_->model(); }
  const Buckets& buckets() const override { return inner_->buckets(); }
  State state() override;
  absl::Status Synchronize(base::Deadline deadline) override;
  absl::StatusOr<StepResult> Step(const Batch& batch, double learning_rate,
                                  base::Deadline deadline) override;
  absl::StatusOr<StepResult> Settle(base::Deadline deadline) override;
  bool in_step() const override { return false; }
  absl::StatusOr<torch::Tensor> Predict(const std::vector<torch::Tensor>& inputs,
                                        base::Deadline deadline) override {
    return inner_->Predict(inputs, deadline);
  }
  // Puts the outer parameters and statistics in the place of this rank's own.
  void SwapWeights() override;
  void RequestStop() override { stop_requested_ = true; }
  // "exchange_bytes" that this rank has sent, before the collective's own doubling;
  // "exchange_seconds" that it has waited for.
  std::vector<Figure> Figures() override;

 private:
  // What ranks tell each other beside the differences: sums of losses x samples, samples, samples
  // that were right, and who wishes to stop.
  using Told = std::array<double, 4>;
  struct Fragment {
    std::vector<size_t> buckets;
    int64_t offset = 0;        // in each round of `every` steps
    int64_t since_begun = -1;  // steps; -1: it is not under way
    comm::Stream::Ticket ticket = 0;
    Told own = {}, all = {};
  };

  LocalSgd(std::unique_ptr<DataParallel> inner, std::unique_ptr<comm::Communicator> communicator,
           LocalSgdOptions options);
  comm::Stream& ranks() override { return stream_; }
  void Begin(Fragment& fragment, base::Deadline deadline);
  absl::Status End(Fragment& fragment, StepResult& result);
  void TakeOuterStep(size_t bucket);
  // Adds what the others have told to a result of this rank.
  static void AddOthers(const Told& all, const Told& own, StepResult& result);
  void BeginAtOuter();

  const LocalSgdOptions options_;
  const Layout layout_;
  const std::unique_ptr<DataParallel> inner_;  // over a group of this rank alone
  // By bucket, [size]: p, v, p - q and their mean, what is kept of it until the ranks settle.
  std::vector<torch::Tensor> outer_, velocities_, differences_, residual_;
  std::map<std::string, torch::Tensor> outer_buffers_;  // floating ones; of each name
  std::vector<Fragment> fragments_;
  Told told_ = {};                                                // since the last exchange
  const torch::Tensor steps_ = torch::zeros({1}, torch::kInt64);  // of the run
  const torch::Tensor has_own_ = torch::zeros({1}, torch::kInt64);
  bool swapped_ = false;
  std::atomic<bool> stop_requested_ = false;
  double bytes_ = 0, waited_ = 0;  // since Figures
  std::unique_ptr<comm::CompressedAllReduce> compressed_;
  std::vector<comm::ErrorFeedback> feedback_;  // by bucket
  comm::Stream stream_;                        // its thread works on all above
};

}  // namespace tutti::parallel
