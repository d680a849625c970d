#include "runtime/parallel/data_parallel.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/device/autocast.h"
#include "runtime/parallel/catch_errors.h"
#include "runtime/parallel/collectives.h"
#include "runtime/parallel/flat_model.h"
#include "runtime/parallel/lap.h"

namespace tutti::parallel {

absl::Status CheckTrainable(const models::ModelImpl& model, const DataParallelOptions& options) {
  const auto parameters = model.parameters();
  if (parameters.empty()) return absl::InvalidArgumentError("the model has no parameters");
  const auto type = parameters[0].scalar_type();
  bool any = false;
  for (const torch::Tensor& parameter : parameters) {
    any |= parameter.requires_grad();
    if (parameter.scalar_type() != type || (type != torch::kFloat32 && type != torch::kFloat64)) {
      return absl::InvalidArgumentError("the model's parameters must all be fp32, or all fp64");
    }
  }
  if (!any) return absl::InvalidArgumentError("every parameter of the model is frozen");
  if (options.accumulation < 1) {
    return absl::InvalidArgumentError("a step has at least one micro-batch");
  }
  if (options.compression && type != torch::kFloat32) {
    return absl::InvalidArgumentError("only gradients in fp32 can be compressed");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DataParallel>> DataParallel::Create(
    models::Model model, std::unique_ptr<comm::Communicator> communicator,
    const DataParallelOptions& options) {
  TUTTI_RETURN_IF_ERROR(CheckTrainable(*model, options));
  return std::unique_ptr<DataParallel>(
      new DataParallel(std::move(model), std::move(communicator), options));
}

DataParallel::DataParallel(models::Model model, std::unique_ptr<comm::Communicator> communicator,
                           const DataParallelOptions& options)
    : model_(std::move(model)),
      options_(options),
      layout_(DataLayout(*communicator)),
      buffers_(FlattenBuffers(model_)),
      not_reduced_(NotFlattened(model_)),
      tail_(buffers_.numel(), communicator->size()),
      buckets_(FlattenParameters(model_, options.bucket_bytes, tail_.size(),
                                 SharedWithNode(*communicator))),
      stream_(std::move(communicator)) {
  reducer_ = std::make_unique<GradientReducer>(buckets_, stream_, options_.compression);
  if (options_.synchronized_batch_norm && world_size() > 1) {
    models::UseSynchronizedBatchNorm(model_, [this](torch::Tensor& sums) {
      return stream_.Run(SumOf(sums.mutable_data_ptr(), static_cast<size_t>(sums.numel()),
                               comm::DataType::kFloat64, deadline_));
    });
  }
}

DataParallel::~DataParallel() {
  if (options_.synchronized_batch_norm) models::UseSynchronizedBatchNorm(model_, nullptr);
}

absl::Status DataParallel::Synchronize(base::Deadline deadline) {
  for (const auto& bucket : buckets_) stream_.Issue(BroadcastOf(bucket->values(), deadline));
  for (const torch::Tensor& tensor : not_reduced_) stream_.Issue(BroadcastOf(tensor, deadline));
  return Broadcast(buffers_, deadline);
}

absl::StatusOr<std::vector<torch::Tensor>> DataParallel::SettleResidual(base::Deadline deadline) {
  return reducer_->Settle(deadline);
}

absl::Status DataParallel::RestoreResidual(const std::vector<torch::Tensor>& residual,
                                           base::Deadline deadline) {
  return reducer_->Restore(residual, deadline);
}

// fp32, or fp64 if the model is.
std::vector<torch::Tensor> DataParallel::Outputs(const torch::Tensor& images) {
  const device::Autocast autocast(options_.bf16, torch::kCPU);
  std::vector<torch::Tensor> outputs = model_->Outputs(images);
  for (torch::Tensor& output : outputs) {
    if (output.scalar_type() != torch::kFloat64) output = output.to(torch::kFloat32);
  }
  return outputs;
}

absl::StatusOr<torch::Tensor> DataParallel::Predict(const torch::Tensor& images,
                                                    base::Deadline deadline) {
  return CatchErrors<torch::Tensor>(stream_, [&]() -> absl::StatusOr<torch::Tensor> {
    torch::NoGradGuard no_grad;
    model_->eval();
    return Outputs(images)[0];
  });
}

absl::StatusOr<StepResult> DataParallel::Step(const Batch& batch, const Update& update,
                                              base::Deadline deadline) {
  deadline_ = deadline;
  return CatchErrors<StepResult>(stream_, [&] { return TryStep(batch, update); });
}

// Micro-batches with images in them; but all ranks meet in batch-norms that they share, and the
// last backward of a part without images begins what the others do.
int64_t DataParallel::Passes(int64_t count) const {
  if (options_.synchronized_batch_norm) return options_.accumulation;
  return std::clamp<int64_t>(count, 1, options_.accumulation);
}

absl::StatusOr<StepResult> DataParallel::TryStep(const Batch& batch, const Update& update) {
  StepResult result;
  LapTimer timer;
  const torch::Tensor& targets = batch.targets;
  whole_ = {targets.size(0), options_.task->Units(targets)};
  const int64_t counted = stream_.Issue(SumOf(&whole_, 2, comm::DataType::kInt64, deadline_));
  const int64_t passes = Passes(targets.size(0));
  reducer_->Begin(deadline_, passes);
  RankSummary own;
  const auto some_images = batch.inputs.tensor_split(passes),
             some_targets = targets.tensor_split(passes);
  for (size_t pass = 0; pass < some_targets.size(); ++pass) {
    const torch::Tensor loss = Forward(some_images[pass], some_targets[pass], own);
    own.stop = stop_requested_;
    // The last backward sends it.
    if (pass + 1 == some_targets.size()) tail_.Fill(buckets_[0]->tail(), buffers_, rank(), own);
    result.times.forward += timer.Lap();
    if (pass == 0) TUTTI_RETURN_IF_ERROR(stream_.Wait(counted));
    result.times.communication += timer.Lap();
    if (loss.defined()) (loss / whole_.divisor()).backward();
    result.times.backward += timer.Lap();
  }
  TUTTI_RETURN_IF_ERROR(reducer_->Finish());
  TUTTI_RETURN_IF_ERROR(ReadTail(result));
  TUTTI_RETURN_IF_ERROR(CheckGradients());
  result.times.communication += timer.Lap();
  if (update == nullptr) return result;
  if (options_.clip_norm > 0) ScaleToNorm(buckets_, SquaredNorms(*model_), options_.clip_norm);
  update();
  result.times.update = timer.Lap();
  return result;
}

torch::Tensor DataParallel::Forward(const torch::Tensor& images, const torch::Tensor& targets,
                                    RankSummary& own) {
  model_->train();
  // An empty part has nothing to normalise, but batch-norms that the ranks share need its zero.
  if (targets.size(0) == 0 && !options_.synchronized_batch_norm) return {};
  const tasks::Loss loss = options_.task->LossOf(Outputs(images), targets);
  if (loss.correct.defined()) own.correct += loss.correct.item<int64_t>();
  own.loss += loss.sum.item<double>();
  return loss.sum;
}

// The sums are the same on every rank, so all find the same.
absl::Status DataParallel::CheckGradients() const {
  const std::string name = FirstNotFinite(buckets_);
  if (name.empty()) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("the gradient of ", name, " is not finite, though the loss is"));
}

absl::Status DataParallel::ReadTail(StepResult& result) {
  const torch::Tensor tail = buckets_[0]->tail();
  TUTTI_RETURN_IF_ERROR(tail_.Read(tail_.Summaries(tail), whole_, result));
  if (world_size() > 1 && !options_.synchronized_batch_norm) {
    torch::NoGradGuard no_grad;
    buffers_.copy_(tail_.MeanBuffers(tail));
  }
  return absl::OkStatus();
}

}  // namespace tutti::parallel
