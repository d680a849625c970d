// Memory that a thread keeps from one convolution to the next. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace tutti::device::cpu {

template <typename T>
class Scratch {
 public:
  // At least `count` elements of any content, valid until the next call.
  T* Of(int64_t count) {
    if (count > size_) {
      memory_.reset(static_cast<T*>(
          ::operator new(static_cast<size_t>(count) * sizeof(T), std::align_val_t(kAlignment))));
      size_ = count;
    }
    return memory_.get();
  }

 private:
  static constexpr size_t kAlignment = 64;
  struct Delete {
    void operator()(T* memory) const { ::operator delete(memory, std::align_val_t(kAlignment)); }
  };
  std::unique_ptr<T, Delete> memory_;
  int64_t size_ = 0;
};

}  // namespace tutti::device::cpu
