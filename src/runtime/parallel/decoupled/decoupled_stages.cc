#include "runtime/parallel/decoupled/decoupled_stages.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/device/autocast.h"
#include "runtime/models/state.h"
#include "runtime/parallel/catch_errors.h"
#include "runtime/parallel/collectives.h"
#include "runtime/parallel/data_parallel.h"
#include "runtime/parallel/flat_model.h"
#include "runtime/parallel/pipeline/stages.h"

namespace tutti::parallel {
namespace {

// What goes before the tensors of a message, in fp64. Forth: activation and targets; back: the
// gradient of the activation, none where the batch was let go of.
struct Head {
  double step = 0;
  double is_marker = 0;  // nothing follows before the ranks meet, after `step` steps
  double stop = 0;       // forth: all stop there; back: a stage behind was asked to
  double loss = 0, count = 0, correct = 0;  // back: by the last stage, since it was told before
};

// Puts running statistics back to what they were.
class KeepBuffers {
 public:
  explicit KeepBuffers(const models::Model& model) : buffers_(model->buffers()) {
    for (const torch::Tensor& each : buffers_) before_.push_back(each.clone());
  }
  ~KeepBuffers() {
    torch::NoGradGuard no_grad;
    for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(before_[i]);
  }
  KeepBuffers(const KeepBuffers&) = delete;
  KeepBuffers& operator=(const KeepBuffers&) = delete;

 private:
  std::vector<torch::Tensor> buffers_, before_;
};

torch::Tensor ActivationBehind(models::ModelImpl& whole, const Cut& cut, int stage,
                               const torch::Tensor& sample) {
  torch::NoGradGuard no_grad;
  const bool was_training = whole.is_training();
  whole.eval();
  const std::vector<models::Layer> layers = whole.Layers();
  const torch::Tensor input = sample.to(whole.parameters()[0].scalar_type());
  models::Fork x{input, input};
  for (size_t i = 0; i < cut[static_cast<size_t>(stage) + 1]; ++i) x = layers[i].forward(x);
  whole.train(was_training);
  return x.main;
}

torch::Tensor WithGradient(const torch::Tensor& input) {
  return input.detach().requires_grad_(true);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DecoupledStages>> DecoupledStages::Create(
    models::Model whole, const torch::Tensor& sample,
    std::unique_ptr<comm::Communicator> communicator, const DecoupledOptions& options,
    base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(CheckTrainable(*whole, {}));
  if (options.layout.replicas() > 1) {
    return absl::InvalidArgumentError(
        "--parallel: gradients=synthetic and gradients=delayed are "
        "of one pipeline: ask for data=1");
  }
  TUTTI_RETURN_IF_ERROR(CheckCut(*whole, options.layout, options.cut));
  std::unique_ptr<CutPredictor> predictor;
  if (options.gradients == DecoupledOptions::Gradients::kSynthetic && options.layout.stages() > 1) {
    // The last stage, which has none, hears of what is wrong with the one before it.
    const int stage = std::min(options.layout.stage(), options.layout.stages() - 2);
    auto made = CutPredictor::Make(
        options.predictor, ActivationBehind(*whole, options.cut, stage, sample), options.seed,
        whole->Layers()[options.cut[static_cast<size_t>(stage) + 1]].name,
        options.predictor_optimizer, options.predictor_rate);
    if (!made.ok()) {
      return base::Annotate(made.status(), absl::StrCat("--parallel: behind stage ", stage));
    }
    if (!options.layout.has_outputs()) predictor = *std::move(made);
  }
  TUTTI_ASSIGN_OR_RETURN(models::Model stage,
                         TakeStage(std::move(whole), options.layout, options.cut));
  TUTTI_ASSIGN_OR_RETURN(Mailboxes boxes, OpenMailboxes(*communicator, options, deadline));
  return std::unique_ptr<DecoupledStages>(new DecoupledStages(
      std::move(stage), std::move(predictor), std::move(communicator), std::move(boxes), options));
}

size_t DecoupledStages::UnderWay(const DecoupledOptions& options, int stage) {
  return static_cast<size_t>(options.waiting * (options.layout.stages() - 1 - stage));
}

// Two stages must not wait for each other: as many gradients fit as there can be batches behind the
// stage before, which in its own turn never waits where batches are let go of.
absl::StatusOr<DecoupledStages::Mailboxes> DecoupledStages::OpenMailboxes(
    comm::Communicator& ranks, const DecoupledOptions& options, base::Deadline deadline) {
  Mailboxes own;
  own.dropped = std::make_shared<std::vector<int64_t>>();
  const Layout& layout = options.layout;
  const auto open = [&](int from, int to, MailboxOptions mailbox) {
    mailbox.from = layout.RankAt(kStageAxis, from);
    mailbox.to = layout.RankAt(kStageAxis, to);
    return Mailbox::Open(ranks, mailbox, deadline);
  };
  const auto forth = [&](int from) {
    return open(from, from + 1,
                {.waiting = UnderWay(options, from),
                 .when_full = options.drops ? MailboxOptions::WhenFull::kDropOldest
                                            : MailboxOptions::WhenFull::kWait,
                 .on_drop = [dropped = own.dropped](const Message& message) {
                   dropped->push_back(static_cast<int64_t>(ReadHead<Head>(message.at(0)).step));
                 }});
  };
  // Beside those that wait some are in the hands of the mailboxes' threads and of the stages.
  const auto back = [&](int from) {
    return open(from, from - 1,
                {.waiting = UnderWay(options, 0) + 3 * static_cast<size_t>(layout.stages())});
  };
  const int stage = layout.stage();
  if (stage > 0) {
    TUTTI_ASSIGN_OR_RETURN(own.activations_in, forth(stage - 1));
    TUTTI_ASSIGN_OR_RETURN(own.gradients_out, back(stage));
  }
  if (!layout.has_outputs()) {
    TUTTI_ASSIGN_OR_RETURN(own.activations_out, forth(stage));
    TUTTI_ASSIGN_OR_RETURN(own.gradients_in, back(stage + 1));
  }
  return own;
}

DecoupledStages::DecoupledStages(models::Model stage, std::unique_ptr<CutPredictor> predictor,
                                 std::unique_ptr<comm::Communicator> communicator,
                                 Mailboxes mailboxes, const DecoupledOptions& options)
    : options_(options),
      model_(std::move(stage)),
      predictor_(std::move(predictor)),
      buckets_(FlattenParameters(model_, 0, 0, OwnMemory)),
      boxes_(std::move(mailboxes)),
      ranks_(std::move(communicator)) {
  if (options.optimizer) optimizer_ = options.optimizer(buckets_, model_);
}

DecoupledStages::~DecoupledStages() {
  std::vector<std::unique_ptr<Mailbox>> all;
  for (auto* box : {&boxes_.activations_in, &boxes_.activations_out, &boxes_.gradients_in,
                    &boxes_.gradients_out}) {
    all.push_back(std::move(*box));
  }
  Mailbox::CloseAll(std::move(all), /*sends=*/!failed_);
}

State DecoupledStages::state() {
  State all = optimizer_ == nullptr ? State() : optimizer_->state();
  for (auto& [name, tensor] : models::StateOf(*model_)) all.push_back({name, tensor});
  for (StateTensor& each : predictor_ == nullptr ? State() : predictor_->state()) {
    all.push_back(std::move(each));
  }
  for (StateTensor& each : all) each.writes = !each.common || is_first();
  return all;
}

// No other rank holds what is a stage's own.
absl::Status DecoupledStages::Synchronize(base::Deadline deadline) {
  for (const StateTensor& each : state()) {
    if (each.common) TUTTI_RETURN_IF_ERROR(ranks_.Run(BroadcastOf(each.tensor, deadline)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Turn> DecoupledStages::NextTurn(int64_t step, int64_t end, base::Deadline deadline) {
  auto turn = [&]() -> absl::StatusOr<Turn> {
    if (!std::exchange(is_between_meetings_, true)) {
      back_is_over_ = is_last();
      stops_ = told_to_stop_ = false;
      end_ = end;
      if (!is_first()) boxes_.activations_in->Expect(1, deadline);
      if (!is_last()) boxes_.gradients_in->Expect(1, WhileOthersCompute(deadline));
    }
    if (!is_first()) return AwaitBatch(deadline);
    stops_ = stop_requested_ || told_to_stop_;
    step_ = step;
    if (step < end_ && !stops_) return Turn{.done = step};
    return EndLeg(step, deadline);
  }();
  return turn.ok() ? turn : Explained(turn.status());
}

absl::StatusOr<Turn> DecoupledStages::AwaitBatch(base::Deadline deadline) {
  TUTTI_ASSIGN_OR_RETURN(come_, boxes_.activations_in->Receive());
  const Head head = ReadHead<Head>(come_.at(0));
  step_ = static_cast<int64_t>(head.step);
  if (head.is_marker != 0) {
    stops_ = head.stop != 0;
    return EndLeg(step_, deadline);
  }
  if (come_.size() != 3) return absl::InternalError("a stage sent no activation with targets");
  boxes_.activations_in->Expect(1, deadline);
  return Turn{.done = step_};
}

// Sends the marker on.
absl::StatusOr<Turn> DecoupledStages::EndLeg(int64_t step, base::Deadline deadline) {
  is_between_meetings_ = false;
  if (!is_last()) {
    const Head head{.step = static_cast<double>(step), .is_marker = 1, .stop = stops_ ? 1.0 : 0.0};
    TUTTI_RETURN_IF_ERROR(boxes_.activations_out->Send({TensorOf(head)}, deadline));
    TUTTI_RETURN_IF_ERROR(ForgetDropped(deadline));
  }
  return Turn{.done = step, .works = false, .last = true};
}

absl::StatusOr<StepResult> DecoupledStages::Step(const Batch& batch, double learning_rate,
                                                 base::Deadline deadline) {
  learning_rate_ = learning_rate;
  auto result = CatchErrors<StepResult>(ranks_, [&]() -> absl::StatusOr<StepResult> {
    StepTimes times;
    LapTimer timer;
    waited_ = 0;
    TUTTI_RETURN_IF_ERROR(TakeDue(deadline));
    times.communication = waited_;
    times.backward = timer.Lap() - waited_;
    TUTTI_RETURN_IF_ERROR(Train(batch, deadline, times));
    StepResult result = News();
    result.times = times;
    return result;
  });
  return result.ok() ? result : Explained(result.status());
}

// The source's memory is another batch's after the step.
absl::Status DecoupledStages::Train(const Batch& batch, base::Deadline deadline, StepTimes& times) {
  Kept kept{.step = step_, .updates = updates_};
  if (is_first()) {
    TUTTI_RETURN_IF_ERROR(CheckOneInput(options_.layout, batch.inputs));
    kept.input = delays() ? batch.inputs[0].clone() : batch.inputs[0];
    kept.targets = batch.targets.clone();
  } else {
    kept.input = come_.at(1);
    kept.targets = come_.at(2);
    come_.clear();
  }
  model_->train();
  if (is_last()) return TrainLast(kept, deadline, times);
  return delays() ? OnlyForward(std::move(kept), deadline, times)
                  : TrainByGuess(std::move(kept), deadline, times);
}

// Of the last stage as DataParallel has it: fp32, or fp64 if the model is.
torch::Tensor DecoupledStages::Output(const torch::Tensor& input) {
  const device::Autocast autocast(options_.bf16, torch::kCPU);
  const torch::Tensor output = model_->forward(input);
  const bool stays = !is_last() || output.scalar_type() == torch::kFloat64;
  return stays ? output : output.to(torch::kFloat32);
}

absl::Status DecoupledStages::TrainLast(const Kept& kept, base::Deadline deadline,
                                        StepTimes& times) {
  LapTimer timer;
  const torch::Tensor input = is_first() ? kept.input : WithGradient(kept.input);
  const tasks::Loss loss = options_.task->LossOf({Output(input)}, kept.targets);
  const auto units = static_cast<double>(std::max<int64_t>(options_.task->Units(kept.targets), 1));
  const double mean = loss.sum.item<double>() / units;
  times.forward += timer.Lap();
  if (!std::isfinite(mean)) {
    return absl::OutOfRangeError(absl::StrCat("the loss of rank ", rank(), " is ", mean));
  }
  const auto count = static_cast<double>(kept.targets.size(0));
  seen_[0] += mean * count;
  seen_[1] += count;
  if (loss.correct.defined()) seen_[2] += loss.correct.item<double>();
  ZeroGradients();
  (loss.sum / units).backward();
  times.backward += timer.Lap();
  TUTTI_RETURN_IF_ERROR(SendBack(kept.step, input.grad(), deadline));
  times.communication += timer.Lap();
  const absl::Status updated = Update();
  times.update += timer.Lap();
  return updated;
}

absl::Status DecoupledStages::TrainByGuess(Kept kept, base::Deadline deadline, StepTimes& times) {
  LapTimer timer;
  const torch::Tensor input = is_first() ? kept.input : WithGradient(kept.input);
  const torch::Tensor output = Output(input);
  kept.activation = output.detach();
  kept.input = torch::Tensor();
  times.forward += timer.Lap();
  TUTTI_RETURN_IF_ERROR(SendOn(kept, deadline));
  times.communication += timer.Lap();
  torch::Tensor gradient;
  if (options_.gradients == DecoupledOptions::Gradients::kAwaited) {
    TUTTI_ASSIGN_OR_RETURN(gradient, AwaitGradient(deadline));
    times.communication += timer.Lap();
  } else {
    gradient = predictor_->Guess(kept.activation, kept.targets);
  }
  ZeroGradients();
  output.backward(gradient.to(output.scalar_type()));
  times.backward += timer.Lap();
  TUTTI_RETURN_IF_ERROR(SendBack(kept.step, input.grad(), deadline));
  times.communication += timer.Lap();
  const absl::Status updated = Update();
  times.update += timer.Lap();
  if (!absl::IsOutOfRange(updated)) return updated;
  return absl::OutOfRangeError(
      absl::StrCat(updated.message(), "; the predictor behind stage ", layout().stage(),
                   " may have guessed what is not finite: lower predictor-rate, or --lr"));
}

absl::Status DecoupledStages::OnlyForward(Kept kept, base::Deadline deadline, StepTimes& times) {
  torch::NoGradGuard no_grad;
  LapTimer timer;
  kept.activation = Output(kept.input);
  times.forward += timer.Lap();
  TUTTI_RETURN_IF_ERROR(SendOn(kept, deadline));
  times.communication += timer.Lap();
  kept_.back().activation = torch::Tensor();
  return absl::OkStatus();
}

absl::Status DecoupledStages::TrainLate(const Kept& kept, const torch::Tensor& gradient,
                                        base::Deadline deadline) {
  torch::Tensor input = is_first() ? kept.input : WithGradient(kept.input);
  {
    const KeepBuffers keep(model_);
    model_->train();
    const torch::Tensor output = Output(input);
    ZeroGradients();
    output.backward(gradient.to(output.scalar_type()));
  }
  TUTTI_RETURN_IF_ERROR(SendBack(kept.step, input.grad(), deadline));
  return Update();
}

void DecoupledStages::ZeroGradients() {
  for (const auto& bucket : buckets_) bucket->gradients().zero_();
}

absl::Status DecoupledStages::Update() {
  ++updates_;
  if (const std::string name = FirstNotFinite(buckets_); !name.empty()) return NotFinite(name);
  if (options_.clip_norm > 0) ScaleToNorm(buckets_, SquaredNorms(*model_), options_.clip_norm);
  if (optimizer_ != nullptr) optimizer_->Step(learning_rate_);
  return absl::OkStatus();
}

absl::Status DecoupledStages::SendOn(const Kept& kept, base::Deadline deadline) {
  kept_.push_back(kept);
  const Head head{.step = static_cast<double>(kept.step)};
  TUTTI_RETURN_IF_ERROR(
      boxes_.activations_out->Send({TensorOf(head), kept.activation, kept.targets}, deadline));
  return ForgetDropped(deadline);
}

absl::Status DecoupledStages::ForgetDropped(base::Deadline deadline) {
  for (const int64_t step : std::exchange(*boxes_.dropped, {})) {
    ++heard_.dropped;
    if (!delays()) std::erase_if(kept_, [step](const Kept& each) { return each.step == step; });
    for (Kept& each : kept_) each.is_dropped |= each.step == step;
  }
  return TellOfDropped(deadline);
}

// The stage before keeps a batch for each that it has sent here, and hears of them in order.
absl::Status DecoupledStages::TellOfDropped(base::Deadline deadline) {
  while (!kept_.empty() && kept_.front().is_dropped) {
    const int64_t step = kept_.front().step;
    kept_.pop_front();
    TUTTI_RETURN_IF_ERROR(SendBack(step, torch::Tensor(), deadline));
  }
  return absl::OkStatus();
}

absl::Status DecoupledStages::SendBack(int64_t step, const torch::Tensor& gradient,
                                       base::Deadline deadline, bool is_marker) {
  if (is_first()) return absl::OkStatus();
  const Head head{.step = static_cast<double>(step),
                  .is_marker = is_marker ? 1.0 : 0.0,
                  .stop = stop_requested_ || told_to_stop_ ? 1.0 : 0.0,
                  .loss = seen_[0] - passed_on_[0],
                  .count = seen_[1] - passed_on_[1],
                  .correct = seen_[2] - passed_on_[2]};
  passed_on_ = seen_;
  Message message = {TensorOf(head)};
  if (gradient.defined()) message.push_back(gradient);
  return boxes_.gradients_out->Send(std::move(message), deadline);
}

absl::StatusOr<Message> DecoupledStages::NextGradient(base::Deadline deadline) {
  LapTimer timer;
  TUTTI_ASSIGN_OR_RETURN(Message message, boxes_.gradients_in->Receive());
  waited_ += timer.Lap();
  const Head head = ReadHead<Head>(message.at(0));
  seen_[0] += head.loss;
  seen_[1] += head.count;
  seen_[2] += head.correct;
  told_to_stop_ |= head.stop != 0;
  back_is_over_ = head.is_marker != 0;
  if (!back_is_over_) boxes_.gradients_in->Expect(1, WhileOthersCompute(deadline));
  return message;
}

absl::StatusOr<torch::Tensor> DecoupledStages::AwaitGradient(base::Deadline deadline) {
  TUTTI_ASSIGN_OR_RETURN(const Message message, NextGradient(deadline));
  kept_.clear();
  return message.at(1);
}

absl::Status DecoupledStages::TakeDue(base::Deadline deadline) {
  const auto is_due = [&] {
    return options_.drops ? boxes_.gradients_in->has_come() : kept_.size() >= under_way();
  };
  while (!is_last() && is_due()) {
    TUTTI_ASSIGN_OR_RETURN(const Message message, NextGradient(deadline));
    TUTTI_RETURN_IF_ERROR(TakeUp(message, deadline));
  }
  return absl::OkStatus();
}

absl::Status DecoupledStages::TakeAll(base::Deadline deadline) {
  while (!back_is_over_) {
    TUTTI_ASSIGN_OR_RETURN(const Message message, NextGradient(deadline));
    if (!back_is_over_) TUTTI_RETURN_IF_ERROR(TakeUp(message, deadline));
  }
  return absl::OkStatus();
}

absl::Status DecoupledStages::TakeUp(const Message& message, base::Deadline deadline) {
  const auto step = static_cast<int64_t>(ReadHead<Head>(message[0]).step);
  if (kept_.empty() || kept_.front().step != step) {
    return absl::InternalError(absl::StrCat("the gradient of step ", step, " came out of turn"));
  }
  const Kept kept = std::move(kept_.front());
  kept_.pop_front();
  if (message.size() < 2) {
    TUTTI_RETURN_IF_ERROR(SendBack(step, torch::Tensor(), deadline));
    return TellOfDropped(deadline);
  }
  ++heard_.gradients;
  heard_.staleness += static_cast<double>(updates_ - kept.updates);
  if (delays()) {
    TUTTI_RETURN_IF_ERROR(TrainLate(kept, message[1], deadline));
    return TellOfDropped(deadline);
  }
  predictor_->Learn(kept.activation, kept.targets, message[1]);
  return absl::OkStatus();
}

// What the last stage has seen since this rank last told.
StepResult DecoupledStages::News() {
  StepResult result;
  const Counts told = std::exchange(told_, seen_);
  const double count = seen_[1] - told[1];
  if (count > 0) {
    result.loss = (seen_[0] - told[0]) / count;
    result.count = static_cast<int64_t>(count);
    result.correct = static_cast<int64_t>(seen_[2] - told[2]);
  }
  return result;
}

absl::StatusOr<StepResult> DecoupledStages::Settle(base::Deadline deadline) {
  auto result = CatchErrors<StepResult>(ranks_, [&]() -> absl::StatusOr<StepResult> {
    TUTTI_RETURN_IF_ERROR(TakeAll(deadline));
    TUTTI_RETURN_IF_ERROR(SendBack(step_, torch::Tensor(), deadline, /*is_marker=*/true));
    StepResult result = News();
    result.stop = stops_;
    seen_ = told_ = passed_on_ = {};
    return result;
  });
  return result.ok() ? result : Explained(result.status());
}

std::vector<Figure> DecoupledStages::Figures() {
  const Heard heard = std::exchange(heard_, {});
  std::vector<Figure> all =
      predictor_ == nullptr ? std::vector<Figure>{{"predictor_error", 0}, {"predictor_cosine", 0}}
                            : predictor_->Figures();
  all.push_back({"gradient_staleness", heard.staleness / std::max(heard.gradients, 1.0)});
  all.push_back({"dropped", static_cast<double>(heard.dropped)});
  return all;
}

void DecoupledStages::SwapWeights() {
  if (optimizer_ != nullptr) optimizer_->SwapWeights();
}

// The mailboxes are empty; one batch waits in each, and is never let go of.
absl::StatusOr<torch::Tensor> DecoupledStages::Predict(const std::vector<torch::Tensor>& inputs,
                                                       base::Deadline deadline) {
  auto output = CatchErrors<torch::Tensor>(ranks_, [&]() -> absl::StatusOr<torch::Tensor> {
    TUTTI_RETURN_IF_ERROR(CheckOneInput(options_.layout, inputs));
    model_->eval();
    return PredictByStages(
        inputs, boxes_.activations_in.get(), boxes_.activations_out.get(),
        [this](const torch::Tensor& input) { return Output(input); }, deadline);
  });
  return output.ok() ? output : Explained(output.status());
}

absl::Status DecoupledStages::Explained(const absl::Status& status) {
  failed_ = true;
  return ByStage(status, options_.layout, ranks_);
}

}  // namespace tutti::parallel
