#include "runtime/parallel/data_parallel.h"

#include <algorithm>
#include <utility>

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
    : Synchronous(DataLayout(*communicator), std::move(model),
                  {.bucket_bytes = options.bucket_bytes,
                   .told = StepTail(0, communicator->size()).size(),
                   .memory = SharedWithNode(*communicator)}),
      options_(options),
      tail_(buffers().numel(), communicator->size(), options.first_rank),
      stream_(std::move(communicator)) {
  reducer_ = std::make_unique<GradientReducer>(buckets(), stream_, options_.compression);
  if (options_.compression) {
    for (const auto& bucket : buckets()) residual_.push_back(torch::zeros_like(bucket->values()));
  }
  if (options_.synchronized_batch_norm && world_size() > 1) {
    models::UseSynchronizedBatchNorm(this->model(), [this](torch::Tensor& sums) {
      return stream_.Run(SumOf(sums.mutable_data_ptr(), static_cast<size_t>(sums.numel()),
                               comm::DataType::kFloat64, deadline_));
    });
  }
  Finish(options.optimizer, options.clip_norm);
}

DataParallel::~DataParallel() {
  if (options_.synchronized_batch_norm) models::UseSynchronizedBatchNorm(model(), nullptr);
}

// Checkpoints call a residual what is owed, and keep that name so that older ones are read. Of one
// that says nothing, its run did not compress.
State DataParallel::state() {
  State all;
  if (!residual_.empty()) AddByName("owed.", buckets(), residual_, all);
  for (StateTensor& each : all) {
    each.writes = rank() == 0;
    each.may_lack = true;
  }
  for (StateTensor& each : Synchronous::state()) all.push_back(std::move(each));
  return all;
}

absl::Status DataParallel::Synchronize(base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(Synchronous::Synchronize(deadline));
  return reducer_->Restore(residual_, deadline);
}

absl::StatusOr<StepResult> DataParallel::Settle(base::Deadline deadline) {
  TUTTI_ASSIGN_OR_RETURN(residual_, reducer_->Settle(deadline));
  return StepResult();
}

// fp32, or fp64 if the model is.
std::vector<torch::Tensor> DataParallel::Outputs(const std::vector<torch::Tensor>& inputs) {
  const device::Autocast autocast(options_.bf16, torch::kCPU);
  std::vector<torch::Tensor> outputs = model()->Outputs(inputs);
  for (torch::Tensor& output : outputs) {
    if (output.scalar_type() != torch::kFloat64) output = output.to(torch::kFloat32);
  }
  return outputs;
}

absl::StatusOr<torch::Tensor> DataParallel::Predict(const std::vector<torch::Tensor>& inputs,
                                                    base::Deadline deadline) {
  return CatchErrors<torch::Tensor>(stream_, [&]() -> absl::StatusOr<torch::Tensor> {
    torch::NoGradGuard no_grad;
    model()->eval();
    return Outputs(inputs)[0];
  });
}

// Micro-batches with samples in them; but all ranks meet in batch-norms that they share, and the
// last backward of a part without samples begins what the others do.
int64_t DataParallel::Passes(int64_t count) const {
  if (options_.synchronized_batch_norm) return options_.accumulation;
  return std::clamp<int64_t>(count, 1, options_.accumulation);
}

absl::StatusOr<StepResult> DataParallel::Gradients(const Batch& batch) {
  StepResult result;
  LapTimer timer;
  whole_ = {batch.targets.size(0), options_.task->Units(batch.targets)};
  const int64_t counted = stream_.Issue(SumOf(&whole_, 2, comm::DataType::kInt64, deadline_));
  const std::vector<Batch> parts = batch.Split(Passes(batch.targets.size(0)));
  reducer_->Begin(deadline_, static_cast<int64_t>(parts.size()));
  RankSummary own;
  for (size_t pass = 0; pass < parts.size(); ++pass) {
    const torch::Tensor loss = Forward(parts[pass], own);
    own.stop = stop_requested();
    // The last backward sends it.
    if (pass + 1 == parts.size()) tail_.Fill(buckets()[0]->tail(), buffers(), rank(), own);
    result.times.forward += timer.Lap();
    if (pass == 0) TUTTI_RETURN_IF_ERROR(stream_.Wait(counted));
    result.times.communication += timer.Lap();
    if (loss.defined()) (loss / whole_.divisor()).backward();
    result.times.backward += timer.Lap();
  }
  TUTTI_RETURN_IF_ERROR(reducer_->Finish());
  TUTTI_RETURN_IF_ERROR(ReadTail(result));
  // The sums are the same on every rank, so all find the same.
  const std::string name = FirstNotFinite(buckets());
  if (!name.empty()) return NotFinite(name);
  result.times.communication += timer.Lap();
  return result;
}

torch::Tensor DataParallel::Forward(const Batch& micro_batch, RankSummary& own) {
  model()->train();
  // An empty part has nothing to normalise, but batch-norms that the ranks share need its zero.
  if (micro_batch.targets.size(0) == 0 && !options_.synchronized_batch_norm) return {};
  const tasks::Loss loss = options_.task->LossOf(Outputs(micro_batch.inputs), micro_batch.targets);
  if (loss.correct.defined()) own.correct += loss.correct.item<int64_t>();
  own.loss += loss.sum.item<double>();
  return loss.sum;
}

absl::Status DataParallel::ReadTail(StepResult& result) {
  const torch::Tensor tail = buckets()[0]->tail();
  TUTTI_RETURN_IF_ERROR(tail_.Read(tail_.Summaries(tail), whole_, result));
  if (world_size() > 1 && !options_.synchronized_batch_norm) {
    torch::NoGradGuard no_grad;
    buffers().copy_(tail_.MeanBuffers(tail));
  }
  return absl::OkStatus();
}

}  // namespace tutti::parallel
