#include "runtime/parallel/gpu_parallel.h"

#include <ATen/Context.h>
#include <ATen/ops/_foreach_copy.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/autograd.h>

#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status.h"
#include "runtime/comm/shared_buffer.h"
#include "runtime/device/autocast.h"
#include "runtime/models/layers/layer_norm.h"
#include "runtime/models/state.h"
#include "runtime/parallel/catch_errors.h"
#include "runtime/parallel/collectives.h"
#include "runtime/parallel/flat_model.h"
#include "runtime/parallel/lap.h"

namespace tutti::parallel {
namespace {

using torch::Tensor;

constexpr size_t kOneBucket = size_t{1} << 40;  // nobody to begin earlier for

// Norms' stay in fp32, whatever surrounds them.
std::set<const c10::TensorImpl*> OfNorms(const models::Model& model) {
  std::set<const c10::TensorImpl*> found;
  for (const auto& module : model->modules()) {
    const bool norm = module->named_buffers(/*recurse=*/false).contains("running_mean") ||
                      module->as<models::LayerNormImpl>() != nullptr;
    if (!norm) continue;
    for (const Tensor& parameter : module->parameters(/*recurse=*/false)) {
      found.insert(parameter.unsafeGetTensorImpl());
    }
  }
  return found;
}

models::Model MovedTo(models::Model model, torch::Device device) {
  model->to(device);
  return model;
}

// As the gradient of a parameter that lies so in memory.
Tensor LaidOutAs(const Tensor& gradient, const Tensor& parameter) {
  const auto format =
      parameter.dim() == 4 ? torch::MemoryFormat::ChannelsLast : torch::MemoryFormat::Contiguous;
  return gradient.contiguous(format);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuParallel>> GpuParallel::Create(
    models::Model model, std::unique_ptr<comm::Communicator> communicator,
    const DataParallelOptions& options, torch::Device device) {
  TUTTI_RETURN_IF_ERROR(CheckTrainable(*model, options));
  if (model->parameters()[0].scalar_type() != torch::kFloat32) {
    return absl::InvalidArgumentError("on a GPU, models are trained from fp32");
  }
  if (options.accumulation > 1) {
    return absl::InvalidArgumentError("gradients are accumulated with --device cpu alone");
  }
  if (options.compression) {
    return absl::InvalidArgumentError("gradients are compressed with --device cpu alone");
  }
  if (options.synchronized_batch_norm && communicator->size() > 1) {
    return absl::InvalidArgumentError("batch-norm over all ranks goes with --device cpu alone");
  }
  try {
    return std::unique_ptr<GpuParallel>(
        new GpuParallel(std::move(model), std::move(communicator), options, device));
  } catch (const c10::Error& error) {
    return absl::ResourceExhaustedError(error.what_without_backtrace());
  }
}

GpuParallel::GpuParallel(models::Model model, std::unique_ptr<comm::Communicator> communicator,
                         const DataParallelOptions& options, torch::Device device)
    : Synchronous(DataLayout(*communicator), MovedTo(std::move(model), device),
                  {.bucket_bytes = communicator->size() == 1 ? kOneBucket : 0,
                   .told = StepTail(0, communicator->size()).size()}),
      options_(options),
      device_(device),
      tail_(buffers().numel(), communicator->size()),
      input_(device),
      share_(torch::zeros({}, torch::device(device))),
      found_nonfinite_(torch::zeros({1}, torch::device(device))),
      stream_(std::move(communicator)) {
  for (const auto& bucket : buckets()) bucket->found_nonfinite = found_nonfinite_;
  MakeCopies();
  Finish(options.optimizer, options.clip_norm);
}

void GpuParallel::MakeCopies() {
  const auto norms = OfNorms(model());
  for (const auto& bucket : buckets()) {
    if (options_.bf16) bucket->copy = torch::zeros_like(bucket->values(), torch::kBFloat16);
    for (const Bucket::Slot& slot : bucket->slots()) {
      const bool copied = options_.bf16 && !norms.contains(slot.parameter.unsafeGetTensorImpl()) &&
                          !models::IsTokenOrPosition(slot.name);
      trained_.push_back({slot.parameter, slot.parameter.grad(),
                          copied ? Bucket::View(bucket->copy, slot) : Tensor()});
    }
  }
  RefreshCopies();
}

void GpuParallel::RefreshCopies() {
  for (const auto& bucket : buckets()) {
    if (bucket->copy.defined()) bucket->copy.copy_(bucket->values());
  }
}

// The model's parameters are their copies while they are recorded or run, else the values
// themselves.
void GpuParallel::SwapCopies() {
  for (Trained& trained : trained_) {
    if (!trained.copy.defined()) continue;
    const Tensor now = trained.parameter.detach();
    trained.parameter.set_data(trained.copy);
    trained.copy = now;
  }
}

absl::Status GpuParallel::Synchronize(base::Deadline deadline) {
  if (world_size() > 1 && sum_ == nullptr) {
    TUTTI_ASSIGN_OR_RETURN(GpuSumChoice choice, MakeGpuSum(stream_, device_, deadline));
    sum_ = std::move(choice.sum);
    if (rank() == 0 && !choice.why_host.empty()) {
      base::Warn(absl::StrCat("gradients go through host memory: ", choice.why_host));
    }
  }
  TUTTI_RETURN_IF_ERROR(Synchronous::Synchronize(deadline));
  RefreshCopies();
  return absl::OkStatus();
}

std::vector<Tensor> GpuParallel::Outputs(const std::vector<Tensor>& inputs) const {
  const device::Autocast autocast(options_.bf16, torch::kCUDA);
  std::vector<Tensor> outputs = model()->Outputs(inputs);
  for (Tensor& output : outputs) output = output.to(torch::kFloat32);
  return outputs;
}

absl::StatusOr<Tensor> GpuParallel::Predict(const std::vector<Tensor>& inputs,
                                            base::Deadline deadline) {
  return CatchErrors<Tensor>(stream_, [&]() -> absl::StatusOr<Tensor> {
    torch::NoGradGuard no_grad;
    model()->eval();
    return Outputs(OnDevice(inputs, device_))[0].cpu();
  });
}

absl::StatusOr<StepResult> GpuParallel::Gradients(const Batch& batch) {
  StepResult result;
  LapTimer timer;
  if (world_size() > 1 && sum_ == nullptr) {
    return absl::FailedPreconditionError("ranks have to be synchronized before their first step");
  }
  const MiniBatch part{batch.targets.size(0), options_.task->Units(batch.targets)};
  const bool renewed = input_.Begin(batch);
  TUTTI_RETURN_IF_ERROR(ShareOut(part));
  // Recording waits for the GPU, and nobody else would watch over the ranks then.
  if (renewed) TUTTI_RETURN_IF_ERROR(AwaitAllSoFar());
  result.times.communication = timer.Lap();
  Report report;
  report.whole = whole_;
  Run(renewed);
  result.times.forward = timer.Lap();
  if (world_size() > 1) {
    if (sum_->waits()) TUTTI_RETURN_IF_ERROR(AwaitAllSoFar());
    result.times.backward = timer.Lap();
    TUTTI_RETURN_IF_ERROR(AddUp(report));
    result.times.communication += timer.Lap();
  }
  EnqueueResult(std::move(report));
  TUTTI_RETURN_IF_ERROR(Await(input_.taken(), "take a batch"));
  seconds_in_sum_ = 0;
  if (reports_.size() > kAhead) TUTTI_RETURN_IF_ERROR(CollectResult(result));
  // A group of one asks nobody.
  if (world_size() == 1) result.stop = stop_requested();
  const double waited = timer.Lap(), for_others = std::min(waited, seconds_in_sum_);
  result.times.communication += for_others;
  result.times.backward += waited - for_others;
  return result;
}

absl::Status GpuParallel::AwaitAllSoFar() {
  c10::Event event(c10::DeviceType::CUDA);
  event.record(c10::impl::VirtualGuardImpl(torch::kCUDA).getStream(device_));
  return Await(event, "finish a step");
}

absl::Status GpuParallel::Await(c10::Event& event, const char* what) {
  return sum_ == nullptr ? WaitFor(event, what, deadline_) : sum_->Await(event, what, deadline_);
}

// The gradient of a unit's loss counts one part in as many as the mini-batch has units.
absl::Status GpuParallel::ShareOut(const MiniBatch& part) {
  sum_of_parts_ = part;
  TUTTI_RETURN_IF_ERROR(stream_.Run(SumOf(&sum_of_parts_, 2, comm::DataType::kInt64, deadline_)));
  const MiniBatch& whole = sum_of_parts_;
  if (whole.divisor() != whole_.divisor() || whole_.images == 0) share_.fill_(1 / whole.divisor());
  whole_ = whole;
  return absl::OkStatus();
}

void GpuParallel::Run(bool renewed) {
  model()->train();
  if (renewed) graph_.reset();
  if (graph_ == nullptr && device::Kernels() != nullptr && input_.batch().targets.size(0) > 0)
    Record();
  if (graph_ != nullptr) return graph_->Replay();
  SwapCopies();
  const absl::Cleanup values = [this] { SwapCopies(); };
  Compute();
}

// The first runs are for cuDNN, which tries its algorithms. What they leave in the buffers, in the
// flag and in the generator of dropout is taken back.
void GpuParallel::Record() {
  std::vector<Tensor> changed = model()->buffers(), kept;
  changed.push_back(found_nonfinite_);
  for (const Tensor& tensor : changed) kept.push_back(tensor.clone());
  at::Generator generator = at::globalContext().defaultGenerator(device_);
  const uint64_t offset = generator.get_offset();
  {
    SwapCopies();
    const absl::Cleanup values = [this] { SwapCopies(); };
    for (int run = 0; run < 2; ++run) Compute();
    graph_ = device::Kernels()->Record([this] { Compute(); });
  }
  generator.set_offset(offset);
  for (size_t i = 0; i < changed.size(); ++i) changed[i].copy_(kept[i]);
}

void GpuParallel::Compute() {
  if (input_.batch().targets.size(0) == 0) {
    for (const auto& bucket : buckets()) bucket->reduced().zero_();
    return;
  }
  const tasks::Loss made =
      options_.task->LossOf(Outputs(input_.batch().inputs), input_.batch().targets);
  const Tensor& loss = made.sum;
  std::vector<Tensor> parameters;
  for (const Trained& trained : trained_) parameters.push_back(trained.parameter);
  const auto gradients = torch::autograd::grad({loss * share_}, parameters, {}, std::nullopt,
                                               /*create_graph=*/false, /*allow_unused=*/true);
  torch::NoGradGuard no_grad;
  Collect(gradients);
  const Tensor correct =
      made.correct.defined() ? made.correct.to(torch::kFloat32) : torch::zeros_like(loss);
  const Tensor not_finite = loss.isfinite().logical_not().to(torch::kFloat32);
  found_nonfinite_.copy_(torch::maximum(found_nonfinite_, not_finite));
  tail_.Write(buckets()[0]->tail(), rank(), loss.detach(), correct);
}

// Into the buckets.
void GpuParallel::Collect(const std::vector<Tensor>& gradients) {
  std::vector<Tensor> from, to;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) {
      trained_[i].gradient.zero_();
      continue;
    }
    from.push_back(LaidOutAs(gradients[i], trained_[i].gradient));
    to.push_back(trained_[i].gradient);
  }
  if (device::Kernels() != nullptr) return device::Kernels()->Gather(from, to, found_nonfinite_);
  at::_foreach_copy_(to, from);
  for (const auto& bucket : buckets()) {
    const Tensor finite = bucket->gradients().sum().isfinite();
    found_nonfinite_.copy_(
        torch::maximum(found_nonfinite_, finite.logical_not().to(torch::kFloat32)));
  }
}

// Gradients, buffers and what the ranks say.
absl::Status GpuParallel::AddUp(Report& report) {
  torch::NoGradGuard no_grad;
  const Tensor tail = buckets()[0]->tail();
  tail_.Share(tail, buffers(), rank(), stop_requested());
  std::vector<Tensor> all;
  for (const auto& bucket : buckets()) all.push_back(bucket->reduced());
  const c10::Stream stream = c10::impl::VirtualGuardImpl(torch::kCUDA).getStream(device_);
  report.computed.record(stream);
  TUTTI_RETURN_IF_ERROR(sum_->Add(all, deadline_));
  report.summed.record(stream);
  buffers().copy_(tail_.MeanBuffers(tail));
  // What is not finite on one rank is not in the sum, on any. Buffers may be what they like.
  std::vector<Tensor> sums = {tail_.Summaries(tail).sum()};
  for (const auto& bucket : buckets()) sums.push_back(bucket->gradients().sum());
  const Tensor finite = torch::stack(sums).isfinite().all();
  found_nonfinite_.copy_(
      torch::maximum(found_nonfinite_, finite.logical_not().to(torch::kFloat32)));
  return absl::OkStatus();
}

void GpuParallel::EnqueueResult(Report report) {
  const auto host = torch::device(torch::kCPU).pinned_memory(true);
  const Tensor summaries = tail_.Summaries(buckets()[0]->tail());
  report.summaries = torch::empty(summaries.sizes(), host);
  report.found_nonfinite = torch::empty({1}, host);
  report.summaries.copy_(summaries, /*non_blocking=*/true);
  report.found_nonfinite.copy_(found_nonfinite_, /*non_blocking=*/true);
  report.written.record(c10::impl::VirtualGuardImpl(torch::kCUDA).getStream(device_));
  reports_.push_back(std::move(report));
}

// The oldest report, added to `result`.
absl::Status GpuParallel::CollectResult(StepResult& result) {
  TUTTI_RETURN_IF_ERROR(Await(reports_.front().written, "finish a step"));
  const Report& report = reports_.front();
  StepResult heard;
  TUTTI_RETURN_IF_ERROR(tail_.Read(report.summaries, report.whole, heard));
  if (world_size() > 1 && !sum_->waits()) {
    seconds_in_sum_ = 1e-3 * report.computed.elapsedTime(report.summed);
  }
  if (report.found_nonfinite.item<float>() != 0) {
    TUTTI_RETURN_IF_ERROR(AwaitAllSoFar());
    const std::string name = FirstNotFinite(buckets());
    return NotFinite(name.empty() ? "a layer" : name);
  }
  const double sum = result.loss * static_cast<double>(result.count) +
                     heard.loss * static_cast<double>(heard.count);
  result.count += heard.count;
  result.correct += heard.correct;
  result.stop |= heard.stop;
  result.loss = sum / static_cast<double>(std::max<int64_t>(result.count, 1));
  reports_.pop_front();
  return absl::OkStatus();
}

absl::StatusOr<StepResult> GpuParallel::Settle(base::Deadline deadline) {
  deadline_ = deadline;
  return CatchErrors<StepResult>(stream_, [&]() -> absl::StatusOr<StepResult> {
    StepResult result;
    while (!reports_.empty()) TUTTI_RETURN_IF_ERROR(CollectResult(result));
    return result;
  });
}

}  // namespace tutti::parallel
