// Scratch is memory that a thread keeps from one convolution to the next. Thread-compatible.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace tutti::device::cpu {

template <typename T>
class Scratch {
 public:
  // Returns at least `count` elements of any content, valid until the next call.
  T* Of(int64_t count) {
    if (count > size_) {
      const size_t bytes = static_cast<size_t>(count) * sizeof(T);
      memory_.reset(static_cast<T*>(::operator new(bytes, std::align_val_t(kAlignment))));
      // Whole huge pages of it; without, every other access to wide panels misses the TLB.
      const size_t huge = bytes / kAlignment * kAlignment;
      if (huge > 0) ::madvise(memory_.get(), huge, MADV_HUGEPAGE);
      size_ = count;
    }
    return memory_.get();
  }

 private:
  static constexpr size_t kAlignment = size_t{2} << 20;  // a huge page
  struct Delete {
    void operator()(T* memory) const { ::operator delete(memory, std::align_val_t(kAlignment)); }
  };
  std::unique_ptr<T, Delete> memory_;
  int64_t size_ = 0;
};

}  // namespace tutti::device::cpu
