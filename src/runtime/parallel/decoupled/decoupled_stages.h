// DecoupledStages lays the layers of a model over ranks as a pipeline does, and lets each stage
// update without hearing from the next one.
//
//   stage 0 | forward, guess, update | forward, guess, update | ...
//           \ activation, targets     \                            a mailbox at each cut,
//   stage 1          | forward, guess, update | ...                one way and the other
//           / gradient of the activation
//   stage 0 trains its predictor with it, when it comes
//
// "synthetic": a predictor (models/gradient_predictor.h) gives a gradient of the stage's output at
// once, and learns from the one that comes later: the true one where the next stage is the last,
// else what that stage's own predictor made of it. "delayed": a stage updates when the true
// gradient comes, with the parameters it has by then: the stage's forward pass is computed once
// more for it, and running statistics are those of the first.
//
// Each stage's steps are those batches that have come to it: the targets travel with the
// activation, and nobody reads samples but the first stage. A step's number is the batch's in the
// run, on every stage.
//
// `waiting` batches are under way for each stage behind a cut. Where a stage waits when there are
// more, it takes up the gradient of a batch exactly as many steps later, whoever is fast: a run
// leaves the same bits each time. Where it drops them, it lets go of the oldest one, which the
// stages behind never see, and takes up what has come: it waits for nobody.
//
// Where all ranks meet, a marker passes the mailboxes one way and back: nothing is under way then,
// every gradient was taken up, and what was let go of is counted. What stages lie on other ranks,
// or how many there are, may change there: a checkpoint is one of a pipeline, with
// "predictor.<layer behind>.<kind>-<width>-<classes>.<name>" in the run's part for what each cut
// has learnt.
//
// Clipping is by each stage, to the norm of its own gradients. A step's result has the samples that
// the last stage has seen, as far as this rank has heard. Thread-compatible.
#pragma once

#include <torch/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/comm/stream.h"
#include "runtime/models/model.h"
#include "runtime/parallel/decoupled/cut_predictor.h"
#include "runtime/parallel/mailbox.h"
#include "runtime/parallel/optimizer.h"
#include "runtime/parallel/pipeline/partition.h"
#include "runtime/parallel/strategy.h"
#include "runtime/tasks/classification.h"

namespace tutti::parallel {

struct DecoupledOptions {
  enum class Gradients {
    kSynthetic,
    kDelayed,
    kAwaited  // "synthetic" with a predictor that waits for the truth: backpropagation, for tests
  };

  Layout layout;  // of one replica
  Cut cut;
  Gradients gradients = Gradients::kSynthetic;
  models::PredictorSpec predictor;
  double predictor_rate = 1e-3;
  uint64_t seed = 0;    // of predictors
  int64_t waiting = 2;  // see above
  bool drops = false;
  std::shared_ptr<const tasks::Task> task = std::make_shared<tasks::Classification>();
  bool bf16 = false;
  double clip_norm = 0;
  OptimizerFactory optimizer, predictor_optimizer;  // null: there are no updates
};

class DecoupledStages final : public Strategy {
 public:
  // Takes over the stage's layers of `whole`, which nobody else may hold on to. `sample` is an
  // input [1, ...] of the whole model, by which predictors learn what they are for. Every rank
  // calls it. InvalidArgument: see TakeStage and MakePredictor; several replicas.
  static absl::StatusOr<std::unique_ptr<DecoupledStages>> Create(
      models::Model whole, const torch::Tensor& sample,
      std::unique_ptr<comm::Communicator> communicator, const DecoupledOptions& options,
      base::Deadline deadline);
  ~DecoupledStages() override;

  const Layout& layout() const override { return options_.layout; }
  const models::Model& model() const override { return model_; }
  const Buckets& buckets() const override { return buckets_; }
  State state() override;
  absl::Status Synchronize(base::Deadline deadline) override;
  absl::StatusOr<Turn> NextTurn(int64_t step, int64_t end, base::Deadline deadline) override;
  absl::StatusOr<StepResult> Step(const Batch& batch, double learning_rate,
                                  base::Deadline deadline) override;
  absl::StatusOr<StepResult> Settle(base::Deadline deadline) override;
  bool in_step() const override { return false; }
  absl::StatusOr<torch::Tensor> Predict(const std::vector<torch::Tensor>& inputs,
                                        base::Deadline deadline) override;
  void SwapWeights() override;
  void RequestStop() override { stop_requested_ = true; }
  // "predictor_error", the mean of |guess - gradient|^2 / |gradient|^2, "predictor_cosine" between
  // the two, "gradient_staleness", this stage's updates between an activation and its gradient, and
  // "dropped", batches that it has let go of. Zeros where there is nothing to tell; the guess is
  // that of the predictor when the gradient came.
  std::vector<Figure> Figures() override;

 private:
  // What a batch has left behind until its gradient comes.
  struct Kept {
    int64_t step = 0, updates = 0;
    torch::Tensor input, activation, targets;
    bool is_dropped = false;
  };
  using Counts = std::array<double, 3>;  // of samples: their losses' sum, number, right ones
  // What is heard of the gradients of a cut, since Figures.
  struct Heard {
    double staleness = 0, gradients = 0;
    int64_t dropped = 0;
  };

  struct Mailboxes {
    std::unique_ptr<Mailbox> activations_in, activations_out, gradients_in, gradients_out;
    // Steps whose batches activations_out has let go of, until somebody looks.
    std::shared_ptr<std::vector<int64_t>> dropped;
  };

  DecoupledStages(models::Model stage, std::unique_ptr<CutPredictor> predictor,
                  std::unique_ptr<comm::Communicator> communicator, Mailboxes mailboxes,
                  const DecoupledOptions& options);
  static absl::StatusOr<Mailboxes> OpenMailboxes(comm::Communicator& ranks,
                                                 const DecoupledOptions& options,
                                                 base::Deadline deadline);
  comm::Stream& ranks() override { return ranks_; }
  bool delays() const { return options_.gradients == DecoupledOptions::Gradients::kDelayed; }
  bool is_first() const { return layout().stage() == 0; }
  bool is_last() const { return layout().has_outputs(); }
  // Returns how many batches are under way behind this stage.
  size_t under_way() const { return UnderWay(options_, layout().stage()); }
  static size_t UnderWay(const DecoupledOptions& options, int stage);

  // Returns a later deadline, of a wait for a gradient behind which the others take steps.
  base::Deadline WhileOthersCompute(base::Deadline deadline) const {
    return base::Deadline::After(deadline.Remaining() * static_cast<double>(under_way() + 1));
  }
  absl::StatusOr<Turn> AwaitBatch(base::Deadline deadline);
  absl::StatusOr<Turn> EndLeg(int64_t step, base::Deadline deadline);
  absl::Status Train(const Batch& batch, base::Deadline deadline, StepTimes& times);
  absl::Status TrainLast(const Kept& kept, base::Deadline deadline, StepTimes& times);
  absl::Status TrainByGuess(Kept kept, base::Deadline deadline, StepTimes& times);
  absl::Status OnlyForward(Kept kept, base::Deadline deadline, StepTimes& times);
  absl::Status TrainLate(const Kept& kept, const torch::Tensor& gradient, base::Deadline deadline);
  torch::Tensor Output(const torch::Tensor& input);
  void ZeroGradients();
  absl::Status Update();
  absl::Status SendOn(const Kept& kept, base::Deadline deadline);
  absl::Status ForgetDropped(base::Deadline deadline);
  absl::Status TellOfDropped(base::Deadline deadline);
  absl::Status SendBack(int64_t step, const torch::Tensor& gradient, base::Deadline deadline,
                        bool is_marker = false);
  absl::StatusOr<Message> NextGradient(base::Deadline deadline);
  absl::StatusOr<torch::Tensor> AwaitGradient(base::Deadline deadline);
  // Takes up those gradients that are due before a step, or all, up to the marker.
  absl::Status TakeDue(base::Deadline deadline);
  absl::Status TakeAll(base::Deadline deadline);
  absl::Status TakeUp(const Message& message, base::Deadline deadline);
  StepResult News();
  absl::Status Explained(const absl::Status& status);

  const DecoupledOptions options_;
  const models::Model model_;
  const std::unique_ptr<CutPredictor> predictor_;  // none: of the last stage, and "delayed"
  const Buckets buckets_;
  std::unique_ptr<Optimizer> optimizer_;
  std::atomic<bool> stop_requested_ = false;
  bool told_to_stop_ = false;  // by a stage behind
  bool stops_ = false;         // where all meet next, all stop
  bool is_between_meetings_ = false, failed_ = false;
  bool back_is_over_ = false;  // the marker has come back
  int64_t step_ = 0;           // of this rank's turn
  int64_t end_ = 0;            // after which all meet
  int64_t updates_ = 0;
  double learning_rate_ = 0;
  double waited_ = 0;      // seconds, for gradients
  Message come_;           // what a turn is about, of a stage behind the first
  std::deque<Kept> kept_;  // those whose gradients are to come, in order
  // By the last stage, since the ranks met: as far as this rank has heard; as far as it has told in
  // results; as far as it has told the stage before.
  Counts seen_ = {}, told_ = {}, passed_on_ = {};
  Heard heard_;
  Mailboxes boxes_;
  comm::Stream ranks_;
};

}  // namespace tutti::parallel
