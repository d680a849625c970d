#include "base/threads/at_once.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "base/threads/start_thread.h"

namespace tutti::base {

void ForEachAtOnce(size_t count, size_t most, const std::function<void(size_t)>& body) {
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  std::exception_ptr first;  // of who has set `failed`
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        body(i);
      } catch (...) {
        if (!failed.exchange(true)) first = std::current_exception();
      }
    }
  };
  std::vector<std::thread> others;
  while (others.size() + 1 < std::min(count, most)) {
    std::thread other = StartThread(work);
    if (!other.joinable()) break;
    others.push_back(std::move(other));
  }
  work();
  for (std::thread& other : others) other.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace tutti::base
