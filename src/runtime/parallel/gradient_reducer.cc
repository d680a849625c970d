#include "runtime/parallel/gradient_reducer.h"

#include <torch/autograd.h>
#include <torch/csrc/autograd/function_hook.h>

#include <utility>

#include "base/status.h"
#include "runtime/parallel/collectives.h"

namespace tutti::parallel {
namespace {

// Called by autograd right after it has added to a parameter's .grad.
class AfterAccumulation final : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit AfterAccumulation(std::function<void()> notify) : notify_(std::move(notify)) {}
  void operator()(const torch::autograd::Variable& parameter) override { notify_(); }

 private:
  std::function<void()> notify_;
};

}  // namespace

GradientReducer::GradientReducer(const std::vector<std::unique_ptr<Bucket>>& buckets,
                                 comm::Stream& stream, std::optional<comm::Encoding> compression)
    : buckets_(buckets), stream_(stream), missing_(buckets.size()), feedback_(buckets.size()) {
  if (compression) compressed_ = std::make_unique<comm::CompressedAllReduce>(*compression);
  for (size_t i = 0; i < buckets.size(); ++i) {
    for (const Bucket::Slot& slot : buckets[i]->slots()) {
      torch::autograd::impl::set_post_acc_grad_hooks(
          slot.parameter, std::make_unique<AfterAccumulation>([this, i] { Ready(i); }));
    }
  }
}

GradientReducer::~GradientReducer() {
  for (const auto& bucket : buckets_) {
    for (const Bucket::Slot& slot : bucket->slots()) {
      torch::autograd::impl::set_post_acc_grad_hooks(slot.parameter, nullptr);
    }
  }
}

void GradientReducer::Begin(base::Deadline deadline, int64_t passes) {
  deadline_ = deadline;
  launched_ = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    missing_[i] = buckets_[i]->slots().size() * static_cast<size_t>(passes);
    buckets_[i]->gradients().zero_();
  }
}

void GradientReducer::Ready(size_t bucket) {
  --missing_[bucket];
  while (launched_ < buckets_.size() && missing_[launched_] == 0) Launch(launched_++);
}

absl::Status GradientReducer::Finish() {
  while (launched_ < buckets_.size()) Launch(launched_++);
  return stream_.Wait(last_ticket_);
}

absl::StatusOr<std::vector<torch::Tensor>> GradientReducer::Settle(base::Deadline deadline) {
  std::vector<torch::Tensor> residual;
  if (compressed_ == nullptr) return residual;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    residual.push_back(torch::zeros_like(buckets_[i]->values()));
    const auto settle = [&](comm::Communicator& group) {
      return compressed_->Settle(group, feedback_[i], FloatsOf(residual[i]), deadline);
    };
    TUTTI_RETURN_IF_ERROR(stream_.Run(settle));
  }
  return residual;
}

absl::Status GradientReducer::Restore(const std::vector<torch::Tensor>& residual,
                                      base::Deadline deadline) {
  for (size_t i = 0; i < residual.size(); ++i) {
    const auto take_up = [&](comm::Communicator& group) {
      return compressed_->Restore(group, feedback_[i], FloatsOf(residual[i]), deadline);
    };
    TUTTI_RETURN_IF_ERROR(stream_.Run(take_up));
  }
  return absl::OkStatus();
}

void GradientReducer::Launch(size_t bucket) {
  if (compressed_ == nullptr) return LaunchSum(buckets_[bucket]->reduced());
  LaunchCompressed(bucket);
  const torch::Tensor tail = buckets_[bucket]->tail();
  if (tail.numel() > 0) LaunchSum(tail);
}

void GradientReducer::LaunchCompressed(size_t bucket) {
  last_ticket_ = stream_.Issue([this, bucket, values = FloatsOf(buckets_[bucket]->gradients()),
                                deadline = deadline_](comm::Communicator& communicator) {
    return compressed_->Run(communicator, values, comm::ReduceOp::kSum, &feedback_[bucket],
                            deadline);
  });
}

void GradientReducer::LaunchSum(const torch::Tensor& memory) {
  last_ticket_ = stream_.Issue([data = memory.mutable_data_ptr(), count = memory.numel(),
                                type = DataTypeOf(memory),
                                deadline = deadline_](comm::Communicator& communicator) {
    return communicator.AllReduce(data, static_cast<size_t>(count), type, comm::ReduceOp::kSum,
                                  deadline);
  });
}

}  // namespace tutti::parallel
