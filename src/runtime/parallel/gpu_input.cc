#include "runtime/parallel/gpu_input.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"

namespace tutti::parallel {
namespace {

c10::impl::VirtualGuardImpl Streams() { return c10::impl::VirtualGuardImpl(torch::kCUDA); }

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

bool GpuInput::Fits(const torch::Tensor& images, const torch::Tensor& labels) const {
  return images_.defined() && images_.sizes() == images.sizes() &&
         images_.scalar_type() == images.scalar_type() && labels_.sizes() == labels.sizes() &&
         labels_.scalar_type() == labels.scalar_type();
}

bool GpuInput::Begin(const torch::Tensor& images, const torch::Tensor& labels) {
  const c10::Stream compute = Streams().getStream(device_);
  const bool renewed = !Fits(images, labels);
  if (renewed) {
    const auto like_images = images.options().device(device_);
    for (Slot& slot : slots_) {
      slot.images = torch::empty(images.sizes(), like_images, torch::MemoryFormat::ChannelsLast);
      slot.labels = torch::empty(labels.sizes(), labels.options().device(device_));
      slot.free.record(compute);
    }
    images_ = torch::empty_like(slots_[0].images);
    labels_ = torch::empty_like(slots_[0].labels);
  }
  Slot& slot = slots_[next_];
  next_ = 1 - next_;
  {
    const c10::StreamGuard guard(copies_);
    slot.free.block(copies_);
    slot.images.copy_(images, /*non_blocking=*/true);
    slot.labels.copy_(labels, /*non_blocking=*/true);
    slot.arrived.record(copies_);
  }
  slot.arrived.block(compute);
  images_.copy_(slot.images);
  labels_.copy_(slot.labels);
  slot.free.record(compute);
  return renewed;
}

}  // namespace tutti::parallel
