// DeviceStream is the stream of one GPU on which a rank's collectives run, in the order in which
// the ranks agreed on them, beside the streams on which the framework computes: it waits for an
// event of theirs before it reads a tensor, and they wait for an event of its before they read the
// result. So no host thread waits for a GPU.
//
// DeviceStream is Thread-compatible. Marks are thread-safe and may outlive it.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/collective/nccl/cuda_driver.h"

namespace tutti::comm {

// A device's context is current on this thread while it lives; then that which was before.
class DeviceGuard {
 public:
  DeviceGuard(const CudaDriver& driver, cuda::Context context)
      : driver_(driver), status_(driver.ToStatus(driver.call().CtxPushCurrent(context), "begin")) {}
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard() {
    cuda::Context former = nullptr;
    if (status_.ok()) driver_.call().CtxPopCurrent(&former);
  }
  const absl::Status& status() const { return status_; }

 private:
  const CudaDriver& driver_;
  const absl::Status status_;
};

// Events that were made and are not in use: making one costs more than using it.
class DeviceEventPool {
 public:
  DeviceEventPool(std::shared_ptr<const CudaDriver> driver, cuda::Context context)
      : driver_(std::move(driver)), context_(context) {}
  ~DeviceEventPool();
  absl::StatusOr<cuda::Event> Take();
  void Return(cuda::Event event);
  const CudaDriver& driver() const { return *driver_; }
  cuda::Context context() const { return context_; }

 private:
  const std::shared_ptr<const CudaDriver> driver_;
  const cuda::Context context_;
  std::mutex mutex_;
  std::vector<cuda::Event> free_;
};

// A place on the stream: where one collective ends.
class DeviceEvent {
 public:
  DeviceEvent(std::shared_ptr<DeviceEventPool> events, cuda::Event event)
      : events_(std::move(events)), event_(event) {}
  ~DeviceEvent() { events_->Return(event_); }
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;

  // Returns whether the GPU has come so far. An error of the GPU is an error of its work.
  absl::StatusOr<bool> Reached() const;
  // Makes what is put on `stream` from now on run when the GPU has come so far. Returns at once.
  absl::Status Before(cuda::CudaStream stream) const;

 private:
  const std::shared_ptr<DeviceEventPool> events_;
  const cuda::Event event_;
};

class DeviceStream {
 public:
  static absl::StatusOr<std::unique_ptr<DeviceStream>> Open(
      std::shared_ptr<const CudaDriver> driver, int device);
  ~DeviceStream();

  // Lets the calling thread, for as long as the returned object lives, put work on the stream.
  std::unique_ptr<DeviceGuard> Enter() const;
  // Makes what follows on it wait for this event of the caller's.
  absl::Status After(cuda::Event event);
  absl::StatusOr<std::shared_ptr<DeviceEvent>> Record();
  // Returns memory of the device with these bytes in it, in the order of the stream; valid until
  // the next call, whose work comes later on the stream.
  absl::StatusOr<void*> Write(const std::vector<std::byte>& bytes);

  cuda::CudaStream get() const { return stream_; }
  int device() const { return device_; }

 private:
  DeviceStream(std::shared_ptr<const CudaDriver> driver, int device)
      : driver_(std::move(driver)), device_(device) {}

  const std::shared_ptr<const CudaDriver> driver_;
  const int device_;
  cuda::Context context_ = nullptr;
  cuda::CudaStream stream_ = nullptr;
  std::shared_ptr<DeviceEventPool> events_;
  std::vector<cuda::Address> memory_;  // the last is used; freeing the others would wait for work
  size_t memory_bytes_ = 0;
};

}  // namespace tutti::comm
