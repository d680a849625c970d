#include "runtime/parallel/pipeline/pipeline_parallel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/device/autocast.h"
#include "runtime/parallel/catch_errors.h"
#include "runtime/parallel/collectives.h"
#include "runtime/parallel/data_parallel.h"
#include "runtime/parallel/flat_model.h"
#include "runtime/parallel/lap.h"
#include "runtime/parallel/pipeline/stages.h"

namespace tutti::parallel {
namespace {

std::vector<std::string> TrainedNames(const models::ModelImpl& model) {
  std::vector<std::string> names;
  for (const auto& parameter : model.named_parameters()) {
    if (parameter.value().requires_grad()) names.push_back(parameter.key());
  }
  return names;
}

// Where a stage's names stand among the whole's, in a row.
absl::StatusOr<int64_t> PlaceOf(const std::vector<std::string>& own,
                                const std::vector<std::string>& whole, int stage) {
  const auto at = std::search(whole.begin(), whole.end(), own.begin(), own.end());
  if (at != whole.end()) return at - whole.begin();
  return absl::InternalError(
      absl::StrCat("the parameters of stage ", stage, " are not in the order of the whole model"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<PipelineParallel>> PipelineParallel::Create(
    models::Model whole, std::unique_ptr<comm::Communicator> communicator,
    const PipelineOptions& options, base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(CheckTrainable(*whole, {.accumulation = options.micro_batches}));
  std::vector<std::string> names = TrainedNames(*whole);
  TUTTI_ASSIGN_OR_RETURN(models::Model stage,
                         TakeStage(std::move(whole), options.layout, options.cut));
  TUTTI_ASSIGN_OR_RETURN(const int64_t first_name,
                         PlaceOf(TrainedNames(*stage), names, options.layout.stage()));
  stage->to(options.device);
  TUTTI_ASSIGN_OR_RETURN(Groups groups, FormGroups(*communicator, options, deadline));
  return std::unique_ptr<PipelineParallel>(new PipelineParallel(std::move(stage), std::move(names),
                                                                first_name, std::move(communicator),
                                                                std::move(groups), options));
}

// Each way between two stages has a mailbox of its own: what goes one way never waits for what
// comes the other way.
absl::StatusOr<PipelineParallel::Groups> PipelineParallel::FormGroups(
    comm::Communicator& ranks, const PipelineOptions& options, base::Deadline deadline) {
  const Layout& layout = options.layout;
  Groups groups;
  TUTTI_ASSIGN_OR_RETURN(groups.replicas, GroupAlong(kDataAxis, layout, ranks, deadline));
  const auto open = [&](int from, int to) {
    return Mailbox::Open(ranks,
                         {.from = layout.RankAt(kStageAxis, from),
                          .to = layout.RankAt(kStageAxis, to),
                          .waiting = static_cast<size_t>(options.micro_batches)},
                         deadline);
  };
  const int stage = layout.stage();
  if (stage > 0) {
    TUTTI_ASSIGN_OR_RETURN(groups.activations_in, open(stage - 1, stage));
    TUTTI_ASSIGN_OR_RETURN(groups.gradients_out, open(stage, stage - 1));
  }
  if (!layout.has_outputs()) {
    TUTTI_ASSIGN_OR_RETURN(groups.activations_out, open(stage, stage + 1));
    TUTTI_ASSIGN_OR_RETURN(groups.gradients_in, open(stage + 1, stage));
  }
  return groups;
}

PipelineParallel::PipelineParallel(models::Model stage, std::vector<std::string> names,
                                   int64_t first_name,
                                   std::unique_ptr<comm::Communicator> communicator, Groups groups,
                                   const PipelineOptions& options)
    : Synchronous(options.layout, std::move(stage),
                  {.memory = options.device.is_cpu() ? SharedWithNode(*groups.replicas)
                                                     : GradientMemory(OwnMemory)}),
      options_(options),
      names_(std::move(names)),
      first_name_(first_name),
      squares_(torch::zeros({static_cast<int64_t>(names_.size())}, torch::kFloat64)),
      activations_in_(std::move(groups.activations_in)),
      activations_out_(std::move(groups.activations_out)),
      gradients_in_(std::move(groups.gradients_in)),
      gradients_out_(std::move(groups.gradients_out)),
      replicas_(std::move(groups.replicas)),
      ranks_(std::move(communicator)) {
  if (options.device.is_cpu()) {
    reducer_ = std::make_unique<GradientReducer>(buckets(), replicas_, std::nullopt);
  } else {
    const torch::Tensor finite = torch::zeros({1}, torch::device(options.device));
    for (const auto& bucket : buckets()) bucket->found_nonfinite = finite;
  }
  Finish(options.optimizer, options.clip_norm);
}

PipelineParallel::~PipelineParallel() {
  std::vector<std::unique_ptr<Mailbox>> mailboxes;
  for (auto* mailbox : {&activations_in_, &activations_out_, &gradients_in_, &gradients_out_}) {
    mailboxes.push_back(std::move(*mailbox));
  }
  // A neighbour may still want the last output.
  Mailbox::CloseAll(std::move(mailboxes), /*sends=*/!failed_);
}

absl::Status PipelineParallel::Synchronize(base::Deadline deadline) {
  if (options_.device.is_cuda() && options_.layout.replicas() > 1 && gpu_sum_ == nullptr) {
    TUTTI_ASSIGN_OR_RETURN(GpuSumChoice choice, MakeGpuSum(replicas_, options_.device, deadline));
    gpu_sum_ = std::move(choice.sum);
  }
  return Synchronous::Synchronize(deadline);
}

absl::Status PipelineParallel::Explained(const absl::Status& status) {
  failed_ = true;
  return ByStage(status, options_.layout, ranks_);
}

absl::StatusOr<std::vector<Action>> PipelineParallel::ActionsFor(int64_t micro_batches) {
  const auto made = actions_.find(micro_batches);
  if (made != actions_.end()) return made->second;
  const Timetable table = options_.timetable(options_.layout.stages(), micro_batches);
  TUTTI_RETURN_IF_ERROR(Check(table));
  return actions_[micro_batches] = table[static_cast<size_t>(options_.layout.stage())];
}

absl::StatusOr<StepResult> PipelineParallel::Gradients(const Batch& batch) {
  StepResult result;
  LapTimer timer;
  TUTTI_RETURN_IF_ERROR(CheckOneInput(options_.layout, batch.inputs));
  const int64_t samples = batch.targets.size(0);
  const int64_t count = std::clamp<int64_t>(samples, 1, options_.micro_batches);
  whole_ = {samples, options_.task->Units(batch.targets)};
  counted_ = replicas_.Issue(SumOf(&whole_, 2, comm::DataType::kInt64, deadline_));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Action> actions, ActionsFor(count));
  own_ = RankSummary();
  kept_.assign(static_cast<size_t>(count), Kept());
  parts_ = Batch{OnDevice(batch.inputs, options_.device), batch.targets.to(options_.device)}.Split(
      count);
  if (activations_in_ != nullptr) activations_in_->Expect(count, deadline_);
  if (gradients_in_ != nullptr) gradients_in_->Expect(count, deadline_);
  if (reducer_ != nullptr) reducer_->Begin(deadline_, count);
  if (reducer_ == nullptr) {
    for (const auto& bucket : buckets()) bucket->gradients().zero_();
  }
  model()->train();
  result.times.communication = timer.Lap();
  for (size_t i = 0; i < actions.size(); ++i) {
    if (i + 1 == actions.size()) ShareBuffers();  // which the last backward sends
    TUTTI_RETURN_IF_ERROR(Do(actions[i], result.times));
  }
  timer.Lap();
  TUTTI_RETURN_IF_ERROR(AddUp());
  for (Mailbox* mailbox : {activations_out_.get(), gradients_out_.get()}) {
    if (mailbox != nullptr) TUTTI_RETURN_IF_ERROR(mailbox->Flush());
  }
  TUTTI_RETURN_IF_ERROR(TellAll(result));
  result.times.communication += timer.Lap();
  return result;
}

absl::Status PipelineParallel::OfReplicas(const absl::Status& status) const {
  return comm::Renumbered(status, options_.layout.Along(kDataAxis));
}

absl::Status PipelineParallel::AddUp() {
  TUTTI_RETURN_IF_ERROR(OfReplicas(replicas_.Wait(counted_)));
  if (reducer_ != nullptr) return OfReplicas(reducer_->Finish());
  if (gpu_sum_ == nullptr) return absl::OkStatus();
  std::vector<torch::Tensor> all;
  for (const auto& bucket : buckets()) all.push_back(bucket->reduced());
  return OfReplicas(gpu_sum_->Add(all, deadline_));
}

absl::Status PipelineParallel::Do(const Action& action, StepTimes& times) {
  return action.pass == Pass::kForward ? Forward(action.micro_batch, times)
                                       : Backward(action.micro_batch, times);
}

// All forward passes are done.
void PipelineParallel::ShareBuffers() {
  if (options_.layout.replicas() == 1) return;
  torch::NoGradGuard no_grad;
  buckets()[0]->tail().copy_(buffers()).div_(options_.layout.replicas());
}

void PipelineParallel::Told(const Action& action, double seconds) const {
  if (options_.on_pass) options_.on_pass(action, seconds);
}

// A leaf of this stage's graph, whose gradient goes back to where it came from.
absl::StatusOr<torch::Tensor> PipelineParallel::Input(int64_t micro_batch) {
  if (options_.layout.reads_inputs()) return parts_[static_cast<size_t>(micro_batch)].inputs.at(0);
  TUTTI_ASSIGN_OR_RETURN(const Message received, activations_in_->Receive());
  return received[0].to(options_.device).requires_grad_(true);
}

// Of the last stage as DataParallel has it: fp32, or fp64 if the model is.
torch::Tensor PipelineParallel::Output(const torch::Tensor& input) {
  const device::Autocast autocast(options_.bf16, options_.device.type());
  const torch::Tensor output = model()->forward(input);
  const bool stays = !options_.layout.has_outputs() || output.scalar_type() == torch::kFloat64;
  return stays ? output : output.to(torch::kFloat32);
}

torch::Tensor PipelineParallel::LossOf(const torch::Tensor& output, int64_t micro_batch) {
  const tasks::Loss loss =
      options_.task->LossOf({output}, parts_[static_cast<size_t>(micro_batch)].targets);
  if (loss.correct.defined()) own_.correct += loss.correct.item<int64_t>();
  own_.loss += loss.sum.item<double>();
  return loss.sum;
}

absl::Status PipelineParallel::Forward(int64_t micro_batch, StepTimes& times) {
  LapTimer timer;
  Kept& kept = kept_[static_cast<size_t>(micro_batch)];
  TUTTI_ASSIGN_OR_RETURN(kept.input, Input(micro_batch));
  times.communication += timer.Lap();
  kept.output = Output(kept.input);
  if (options_.layout.has_outputs()) {
    kept.output = LossOf(kept.output, micro_batch);
  } else {
    TUTTI_RETURN_IF_ERROR(activations_out_->Send({kept.output}, deadline_));
  }
  const double seconds = timer.Lap();
  times.forward += seconds;
  Told({Pass::kForward, micro_batch}, seconds);
  return absl::OkStatus();
}

absl::Status PipelineParallel::Backward(int64_t micro_batch, StepTimes& times) {
  LapTimer timer;
  Kept kept = std::exchange(kept_[static_cast<size_t>(micro_batch)], {});
  if (options_.layout.has_outputs()) {
    TUTTI_RETURN_IF_ERROR(OfReplicas(replicas_.Wait(counted_)));
    times.communication += timer.Lap();
    (kept.output / whole_.divisor()).backward();
  } else {
    TUTTI_ASSIGN_OR_RETURN(const Message gradient, gradients_in_->Receive());
    times.communication += timer.Lap();
    kept.output.backward(gradient[0].to(options_.device));
  }
  if (gradients_out_ != nullptr) {
    TUTTI_RETURN_IF_ERROR(gradients_out_->Send({kept.input.grad()}, deadline_));
  }
  kept = {};
  const double seconds = timer.Lap();
  times.backward += seconds;
  Told({Pass::kBackward, micro_batch}, seconds);
  return absl::OkStatus();
}

//   | loss, correct, stop of rank 0 | of rank 1 | ... | not finite, by stage | squares |
absl::Status PipelineParallel::TellAll(StepResult& result) {
  torch::NoGradGuard no_grad;
  const Layout& layout = options_.layout;
  if (layout.replicas() > 1) buffers().copy_(buckets()[0]->tail());
  own_.stop = stop_requested();
  const StepTail summaries(0, layout.world_size);
  const auto clipped = options_.clip_norm > 0 ? static_cast<int64_t>(names_.size()) : 0;
  const torch::Tensor said =
      torch::zeros({summaries.size() + layout.stages() + clipped}, torch::kFloat64);
  const torch::Tensor losses = said.narrow(0, 0, summaries.size()),
                      not_finite = said.narrow(0, summaries.size(), layout.stages()),
                      squares = said.narrow(0, summaries.size() + layout.stages(), clipped);
  summaries.Fill(losses, torch::empty({0}, torch::kFloat64), layout.rank, own_);
  if (layout.replica() == 0) {
    if (const std::string name = FirstNotFinite(buckets()); !name.empty()) {
      not_finite[layout.stage()] =
          static_cast<double>(1 + (std::find(names_.begin(), names_.end(), name) - names_.begin()));
    }
    const torch::Tensor own = clipped > 0 ? SquaredNorms(*model()) : torch::Tensor();
    if (clipped > 0) {
      squares.narrow(0, first_name_, own.numel()).copy_(own);
    }
  }
  TUTTI_RETURN_IF_ERROR(ranks_.Run(SumOf(said.mutable_data_ptr(), static_cast<size_t>(said.numel()),
                                         comm::DataType::kFloat64, deadline_)));
  if (clipped > 0) squares_ = squares;
  TUTTI_RETURN_IF_ERROR(summaries.Read(losses, whole_, result));
  for (int stage = 0; stage < layout.stages(); ++stage) {
    const auto number = static_cast<size_t>(not_finite[stage].item<double>());
    if (number == 0) continue;
    return NotFinite(names_[number - 1]);
  }
  return absl::OkStatus();
}

absl::StatusOr<torch::Tensor> PipelineParallel::Predict(const std::vector<torch::Tensor>& inputs,
                                                        base::Deadline deadline) {
  auto output = CatchErrors<torch::Tensor>(ranks_, [&]() -> absl::StatusOr<torch::Tensor> {
    TUTTI_RETURN_IF_ERROR(CheckOneInput(options_.layout, inputs));
    model()->eval();
    const auto forward = [this](const torch::Tensor& input) {
      return Output(input.to(options_.device));
    };
    return PredictByStages(inputs, activations_in_.get(), activations_out_.get(), forward,
                           deadline);
  });
  return output.ok() ? output : Explained(output.status());
}

}  // namespace tutti::parallel
