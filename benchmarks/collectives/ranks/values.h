// Values as a framework's tensors have them: each block begins at a cache line, as torch's
// allocator has it. A block of malloc's begins 16 bytes behind a page's beginning, where the C
// library's memcpy from mapped memory is 15 times slower on some processors
// (src/base/machine/copy_bytes.h): that would measure the place and not the contender.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

template <typename Value>
struct CacheLineAllocator {
  using value_type = Value;
  static constexpr std::align_val_t kLine{64};

  CacheLineAllocator() = default;
  template <typename Other>
  explicit CacheLineAllocator(const CacheLineAllocator<Other>&) {}

  Value* allocate(size_t count) {
    return static_cast<Value*>(::operator new(count * sizeof(Value), kLine));
  }
  void deallocate(Value* values, size_t) { ::operator delete(values, kLine); }
  bool operator==(const CacheLineAllocator&) const { return true; }
};

using Values = std::vector<float, CacheLineAllocator<float>>;
