// Counts what the whole program takes from operator new, to show that a step takes nothing.
// Covers: prefetch_loader.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

#include "base/test_patience.h"
#include "runtime/data/dataset_fake.h"
#include "runtime/data/loader.h"

namespace {
std::atomic<int64_t> allocations{0};
}

// Not inlined: GCC would otherwise see free() meet operator new and warn.
[[gnu::noinline]] void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace tutti::data {
namespace {

// What 60 steps of 16 samples allocate once everybody has begun: the least of ten times, since a
// thread may take its first sample, and fill its buffers, late on a busy machine.
int64_t AllocationsOf(const LoaderOptions& options) {
  auto loader = MakeLoader(MakeFakeDataset(64, 10), options);
  EXPECT_TRUE(loader.ok()) << loader.status();
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int times = 0; times < 10; ++times) {
    const int64_t before = allocations.load();
    for (int i = 0; i < 60; ++i) {
      EXPECT_TRUE((*loader)->Next(base::Deadline::After(base::Patient(absl::Seconds(30)))).ok());
    }
    least = std::min(least, allocations.load() - before);
  }
  return least;
}

TEST(Loader, AllocatesNothingForAStepOnceTheCacheIsFull) {
  EXPECT_EQ(AllocationsOf({.global_batch = 16, .threads = 2}), 0);
}

TEST(Loader, AllocatesNothingForAStepWhenTheCallerDecodes) {
  EXPECT_EQ(AllocationsOf({.global_batch = 16, .threads = 0, .cache_bytes = 0}), 0);
}

// Each of three transforms (two threads and the caller) has five buffers that may still grow, each
// time by half at least: that does not depend on the number of samples, 960 here.
TEST(Loader, AllocatesOnlyWhatItsScratchBuffersGrowBy) {
  LoaderOptions options{.global_batch = 16, .threads = 2, .cache_bytes = 0};
  EXPECT_EQ(AllocationsOf(options), 0);
  options.augmentation.random_resized_crop = true;
  EXPECT_LE(AllocationsOf(options), 3 * 5);
}

}  // namespace
}  // namespace tutti::data
