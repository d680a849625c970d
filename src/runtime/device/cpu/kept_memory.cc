#include "runtime/device/cpu/kept_memory.h"

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <unordered_map>

namespace tutti::device {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

size_t RoundedUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

size_t BlockFor(size_t bytes) {
  return RoundedUp(bytes, bytes < 2 * kHugePage ? kLargeBlock : kHugePage);
}

// Begins at a multiple of kHugePage.
void* Map(size_t bytes) {
  const size_t with_room = bytes + kHugePage;
  void* const mapped =
      ::mmap(nullptr, with_room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  TORCH_CHECK(mapped != MAP_FAILED, "there are no ", bytes, " bytes of memory left for a tensor");
  auto* const begin = static_cast<std::byte*>(mapped);
  const size_t before =
      RoundedUp(reinterpret_cast<size_t>(mapped), kHugePage) - reinterpret_cast<size_t>(mapped);
  if (before > 0) ::munmap(begin, before);
  ::munmap(begin + before + bytes, kHugePage - before);
  ::madvise(begin + before, bytes, MADV_HUGEPAGE);
  return begin + before;
}

class LargeBlocks final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const bool large = bytes >= kLargeBlock;
    void* const block = large ? Take(BlockFor(bytes)) : Small().raw_allocate(bytes);
    if (large) c10::profiledCPUMemoryReporter().New(block, bytes);  // small ones tell it themselves
    return {block, block, &GiveBack, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &GiveBack; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  KeptMemory Measure() {
    const std::lock_guard lock(mutex_);
    return {used_bytes_, most_used_bytes_, kept_bytes_, mappings_};
  }

  void ReturnAll() {
    const std::lock_guard lock(mutex_);
    while (!kept_.empty()) ReturnLargest();
    most_used_bytes_ = used_bytes_;
  }

  static LargeBlocks& Instance() {
    static auto* const blocks = new LargeBlocks();  // tensors may be freed at the very end
    return *blocks;
  }

 private:
  static c10::Allocator& Small() { return *c10::GetDefaultCPUAllocator(); }

  static void GiveBack(void* block) {
    // Few small blocks begin where every large one does.
    const bool may_be_large = reinterpret_cast<size_t>(block) % kHugePage == 0 && block != nullptr;
    if (!may_be_large || !Instance().Keep(block)) Small().raw_deallocate(block);
  }

  void* Take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto it = kept_.lower_bound(bytes);
    if (it != kept_.end() && it->first <= bytes + bytes / 4) {
      it = std::prev(kept_.upper_bound(it->first));  // the last to be freed is still in the caches
      void* const block = it->second;
      Use(it->first);
      kept_bytes_ -= it->first;
      kept_.erase(it);
      return block;
    }
    Use(bytes);
    while (!kept_.empty() && used_bytes_ + kept_bytes_ > most_used_bytes_ + most_used_bytes_ / 2) {
      ReturnLargest();
    }
    void* const block = Map(bytes);
    ++mappings_;
    sizes_[block] = bytes;
    return block;
  }

  void Use(size_t bytes) {
    used_bytes_ += bytes;
    most_used_bytes_ = std::max(most_used_bytes_, used_bytes_);
  }

  // False: it is none of these.
  bool Keep(void* block) {
    const std::lock_guard lock(mutex_);
    const auto it = sizes_.find(block);
    if (it == sizes_.end()) return false;
    c10::profiledCPUMemoryReporter().Delete(block);  // before another thread can take the block
    kept_.emplace(it->second, block);
    kept_bytes_ += it->second;
    used_bytes_ -= it->second;
    return true;
  }

  void ReturnLargest() {
    const auto largest = std::prev(kept_.end());
    ::munmap(largest->second, largest->first);
    sizes_.erase(largest->second);
    kept_bytes_ -= largest->first;
    kept_.erase(largest);
  }

  std::mutex mutex_;
  std::multimap<size_t, void*> kept_;        // by size
  std::unordered_map<void*, size_t> sizes_;  // of all blocks
  size_t used_bytes_ = 0, most_used_bytes_ = 0, kept_bytes_ = 0, mappings_ = 0;
};

}  // namespace

void KeepLargeBlocks() {
  static std::once_flag once;
  std::call_once(once, [] { c10::SetCPUAllocator(&LargeBlocks::Instance(), /*priority=*/1); });
}

void ReturnKeptBlocks() { LargeBlocks::Instance().ReturnAll(); }

KeptMemory MeasureKeptMemory() { return LargeBlocks::Instance().Measure(); }

}  // namespace tutti::device
