#include "runtime/comm/collective/all_gather.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/status.h"

namespace tutti::comm {

absl::Status BruckAllGather(Links& links, const Chunks& output, base::Deadline deadline) {
  const int n = links.size();
  std::vector<size_t> sizes(n);
  for (int i = 0; i < n; ++i) sizes[i] = output[links.Right(i)].size();
  std::vector<std::byte> memory(output.All().size());
  const Chunks come(memory.data(), sizes, 1);
  const auto copy = [](std::span<std::byte> to, std::span<const std::byte> from) {
    if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
  };
  copy(come[0], output[links.rank()]);
  for (int have = 1; have < n; have *= 2) {
    const int more = std::min(have, n - have);
    TUTTI_RETURN_IF_ERROR(links.Exchange(links.Left(have), come.Range(0, more), links.Right(have),
                                         come.Range(have, have + more), deadline));
  }
  for (int i = 1; i < n; ++i) copy(output[links.Right(i)], come[i]);
  return absl::OkStatus();
}

}  // namespace tutti::comm
