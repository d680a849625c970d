// Counts the bytes of libtorch's tensors on the CPU, whichever thread makes or frees them.
// Thread-safe.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace tutti {

class CountedMemory final : public c10::Allocator {
 public:
  // Stands before the allocator that libtorch has now, from now on.
  static CountedMemory& Begin() {
    c10::SetCPUAllocator(&Instance(), /*priority=*/255);
    return Instance();
  }

  c10::DataPtr allocate(size_t bytes) override {
    void* const block = inner_->raw_allocate(bytes);
    const std::lock_guard lock(mutex_);
    if (block != nullptr) sizes_[block] = static_cast<int64_t>(bytes);
    live_ += block != nullptr ? static_cast<int64_t>(bytes) : 0;
    most_ = std::max(most_, live_);
    return {block, block, &GiveBack, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &GiveBack; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  // Tells whether it was made by this.
  static bool Made(const at::Tensor& tensor) {
    return tensor.storage().data_ptr().get_deleter() == &GiveBack;
  }
  int64_t live() const {
    const std::lock_guard lock(mutex_);
    return live_;
  }
  // The most since somebody last asked to forget it.
  int64_t most() const {
    const std::lock_guard lock(mutex_);
    return most_;
  }
  void ForgetMost() {
    const std::lock_guard lock(mutex_);
    most_ = live_;
  }

 private:
  explicit CountedMemory(c10::Allocator* inner) : inner_(inner) {}
  static CountedMemory& Instance() {
    static auto* const memory =
        new CountedMemory(c10::GetCPUAllocator());  // tensors may outlive it
    return *memory;
  }

  static void GiveBack(void* block) {
    if (block == nullptr) return;
    CountedMemory& memory = Instance();
    {
      const std::lock_guard lock(memory.mutex_);  // before another thread can take the block
      const auto it = memory.sizes_.find(block);
      memory.live_ -= it->second;
      memory.sizes_.erase(it);
    }
    memory.inner_->raw_deallocate(block);
  }

  c10::Allocator* const inner_;
  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<void*, int64_t> sizes_;
  int64_t live_ = 0, most_ = 0;
};

}  // namespace tutti
