#include "runtime/comm/collective/nccl/device_stream.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/status.h"

namespace tutti::comm {
namespace {

constexpr size_t kLeast = 1 << 20;  // bytes

}  // namespace

DeviceEventPool::~DeviceEventPool() {
  const DeviceGuard current(*driver_, context_);
  for (const cuda::Event event : free_) driver_->call().EventDestroy(event);
}

absl::StatusOr<cuda::Event> DeviceEventPool::Take() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      const cuda::Event event = free_.back();
      free_.pop_back();
      return event;
    }
  }
  cuda::Event event = nullptr;
  TUTTI_RETURN_IF_ERROR(
      driver_->ToStatus(driver_->call().EventCreate(&event, cuda::kWithoutTime), "make an event"));
  return event;
}

void DeviceEventPool::Return(cuda::Event event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back(event);
}

absl::StatusOr<bool> DeviceEvent::Reached() const {
  const CudaDriver& driver = events_->driver();
  const DeviceGuard current(driver, events_->context());
  TUTTI_RETURN_IF_ERROR(current.status());
  const cuda::Result result = driver.call().EventQuery(event_);
  if (result == cuda::kNotReady) return false;
  TUTTI_RETURN_IF_ERROR(driver.ToStatus(result, "finish"));
  return true;
}

absl::Status DeviceEvent::Before(cuda::CudaStream stream) const {
  const CudaDriver& driver = events_->driver();
  const DeviceGuard current(driver, events_->context());
  TUTTI_RETURN_IF_ERROR(current.status());
  return driver.ToStatus(driver.call().StreamWaitEvent(stream, event_, 0), "wait on a stream");
}

absl::StatusOr<std::unique_ptr<DeviceStream>> DeviceStream::Open(
    std::shared_ptr<const CudaDriver> driver, int device) {
  std::unique_ptr<DeviceStream> opened(new DeviceStream(std::move(driver), device));
  const CudaDriver& cuda = *opened->driver_;
  int handle = 0, least = 0, greatest = 0;
  TUTTI_RETURN_IF_ERROR(cuda.ToStatus(cuda.call().DeviceGet(&handle, device), "find the GPU"));
  // Never released: the framework holds it as long as the process lives.
  TUTTI_RETURN_IF_ERROR(
      cuda.ToStatus(cuda.call().DevicePrimaryCtxRetain(&opened->context_, handle), "take the GPU"));
  const auto current = opened->Enter();
  TUTTI_RETURN_IF_ERROR(current->status());
  TUTTI_RETURN_IF_ERROR(cuda.ToStatus(cuda.call().CtxGetStreamPriorityRange(&least, &greatest),
                                      "ask for priorities"));
  // Ahead of what computes: others wait for what goes over the network.
  TUTTI_RETURN_IF_ERROR(cuda.ToStatus(
      cuda.call().StreamCreateWithPriority(&opened->stream_, cuda::kBesideDefaultStream, greatest),
      "make a stream"));
  opened->events_ = std::make_shared<DeviceEventPool>(opened->driver_, opened->context_);
  return opened;
}

DeviceStream::~DeviceStream() {
  if (stream_ == nullptr) return;
  const auto current = Enter();
  for (const cuda::Address block : memory_) driver_->call().MemFree(block);
  driver_->call().StreamDestroy(stream_);
}

std::unique_ptr<DeviceGuard> DeviceStream::Enter() const {
  return std::make_unique<DeviceGuard>(*driver_, context_);
}

absl::Status DeviceStream::After(cuda::Event event) {
  return driver_->ToStatus(driver_->call().StreamWaitEvent(stream_, event, 0), "wait for a tensor");
}

absl::StatusOr<std::shared_ptr<DeviceEvent>> DeviceStream::Record() {
  TUTTI_ASSIGN_OR_RETURN(const cuda::Event event, events_->Take());
  auto mark = std::make_shared<DeviceEvent>(events_, event);
  TUTTI_RETURN_IF_ERROR(
      driver_->ToStatus(driver_->call().EventRecord(event, stream_), "record an event"));
  return mark;
}

absl::StatusOr<void*> DeviceStream::Write(const std::vector<std::byte>& bytes) {
  if (memory_.empty() || bytes.size() > memory_bytes_) {
    const size_t wanted = std::bit_ceil(std::max(bytes.size(), kLeast));
    cuda::Address block = 0;
    TUTTI_RETURN_IF_ERROR(
        driver_->ToStatus(driver_->call().MemAlloc(&block, wanted), "give memory"));
    memory_.push_back(block);
    memory_bytes_ = wanted;
  }
  TUTTI_RETURN_IF_ERROR(driver_->ToStatus(
      driver_->call().MemcpyHtoDAsync(memory_.back(), bytes.data(), bytes.size(), stream_),
      "copy"));
  return reinterpret_cast<void*>(memory_.back());
}

}  // namespace tutti::comm
