// Shares flat memory among threads of OpenMP, for kernels, which are compiled with it.
#pragma once

#include <algorithm>
#include <cstddef>

namespace tutti::train {

// Calls `update(begin, end)` for parts of [0, count), each on a thread of its own.
template <typename Update>
void ParallelFor(size_t count, int threads, const Update& update) {
  constexpr size_t kLeastPart = 1 << 16;  // less is not worth a second thread
  const auto most = static_cast<size_t>(std::max(threads, 1));
  const size_t parts = std::clamp<size_t>(count / kLeastPart, 1, most);
#pragma omp parallel for num_threads(static_cast <int>(parts)) if (parts > 1)
  for (size_t part = 0; part < parts; ++part) {
    update(count * part / parts, count * (part + 1) / parts);
  }
}

}  // namespace tutti::train
