// Calls one function for a range of numbers on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace tutti::data {

// Calls work(thread, i) for each i in [begin, end), on `threads` threads (the caller's is one of
// them), thread counting from 0. Returns when all are done. `work` does not throw.
template <typename Work>
void ParallelFor(int threads, int64_t begin, int64_t end, const Work& work) {
  std::atomic<int64_t> next{begin};
  const auto run = [&](size_t thread) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < end;) work(thread, i);
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads && thread < end - begin; ++thread) {
    others.emplace_back(run, static_cast<size_t>(thread));
  }
  run(0);
  for (std::thread& other : others) other.join();
}

}  // namespace tutti::data
