#include "base/at_once.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace tutti::base {

void ForEachAtOnce(size_t count, size_t most, const std::function<void(size_t)>& body) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) body(i);
  };
  const size_t at_once = std::min(count, most);
  std::vector<std::thread> others(at_once > 1 ? at_once - 1 : 0);
  for (std::thread& other : others) other = std::thread(work);
  work();
  for (std::thread& other : others) other.join();
}

}  // namespace tutti::base
