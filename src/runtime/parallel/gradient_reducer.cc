#include "runtime/parallel/gradient_reducer.h"

#include <torch/csrc/autograd/function_hook.h>

#include <utility>

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

comm::DataType DataTypeOf(const torch::Tensor& tensor) {
  return tensor.scalar_type() == torch::kFloat64 ? comm::DataType::kFloat64
                                                 : comm::DataType::kFloat32;
}

}  // namespace

GradientReducer::GradientReducer(const std::vector<std::unique_ptr<Bucket>>& buckets,
                                 comm::Stream& stream)
    : buckets_(buckets), stream_(stream), missing_(buckets.size()) {
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

void GradientReducer::Begin(base::Deadline deadline) {
  deadline_ = deadline;
  launched_ = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    missing_[i] = buckets_[i]->slots().size();
    buckets_[i]->gradients().zero_();
  }
}

void GradientReducer::Ready(size_t bucket) {
  --missing_[bucket];
  while (launched_ < buckets_.size() && missing_[launched_] == 0) Launch(launched_++);
}

absl::Status GradientReducer::Finish() {
  while (launched_ < buckets_.size()) Launch(launched_++);
  return stream_.Wait(last_ticket_, deadline_);
}

void GradientReducer::Launch(size_t bucket) {
  torch::Tensor& memory = buckets_[bucket]->reduced();
  last_ticket_ = stream_.Issue([data = memory.mutable_data_ptr(), count = memory.numel(),
                                type = DataTypeOf(memory),
                                deadline = deadline_](comm::Communicator& communicator) {
    return communicator.AllReduce(data, static_cast<size_t>(count), type, comm::ReduceOp::kSum,
                                  deadline);
  });
}

}  // namespace tutti::parallel
