#include "runtime/parallel/gpu_input.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tutti::parallel {
namespace {

c10::impl::VirtualGuardImpl Streams() { return c10::impl::VirtualGuardImpl(torch::kCUDA); }

std::vector<torch::Tensor> TensorsOf(const Batch& batch) {
  std::vector<torch::Tensor> all = batch.inputs;
  all.push_back(batch.targets);
  return all;
}

Batch EmptyLike(const Batch& batch, torch::Device device) {
  const auto like = [&](const torch::Tensor& tensor) {
    return torch::empty(
        tensor.sizes(), tensor.options().device(device),
        tensor.dim() == 4 ? torch::MemoryFormat::ChannelsLast : torch::MemoryFormat::Contiguous);
  };
  Batch made{{}, like(batch.targets)};
  for (const torch::Tensor& input : batch.inputs) made.inputs.push_back(like(input));
  return made;
}

void Copy(const Batch& from, const Batch& to, bool non_blocking) {
  const auto source = TensorsOf(from), target = TensorsOf(to);
  for (size_t i = 0; i < source.size(); ++i) target[i].copy_(source[i], non_blocking);
}

}  // namespace

absl::Status WaitFor(c10::Event& event, const char* what, base::Deadline deadline) {
  while (!event.query()) {
    if (deadline.Expired()) {
      return absl::DeadlineExceededError(absl::StrCat("the GPU did not ", what, " in time"));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return absl::OkStatus();
}

GpuInput::GpuInput(torch::Device device)
    : device_(device), copies_(Streams().getStreamFromGlobalPool(device)) {}

bool GpuInput::Fits(const Batch& batch) const {
  const auto known = TensorsOf(batch_), given = TensorsOf(batch);
  return std::equal(known.begin(), known.end(), given.begin(), given.end(),
                    [](const torch::Tensor& a, const torch::Tensor& b) {
                      return a.defined() && a.sizes() == b.sizes() &&
                             a.scalar_type() == b.scalar_type();
                    });
}

bool GpuInput::Begin(const Batch& batch) {
  const c10::Stream compute = Streams().getStream(device_);
  const bool renewed = !Fits(batch);
  if (renewed) {
    for (Slot& slot : slots_) {
      slot.batch = EmptyLike(batch, device_);
      slot.free.record(compute);
    }
    batch_ = EmptyLike(batch, device_);
  }
  Slot& slot = slots_[next_];
  next_ = 1 - next_;
  {
    const c10::StreamGuard guard(copies_);
    slot.free.block(copies_);
    Copy(batch, slot.batch, /*non_blocking=*/true);
    slot.arrived.record(copies_);
  }
  slot.arrived.block(compute);
  Copy(slot.batch, batch_, /*non_blocking=*/false);
  slot.free.record(compute);
  return renewed;
}

}  // namespace tutti::parallel
