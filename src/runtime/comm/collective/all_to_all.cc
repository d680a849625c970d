#include "runtime/comm/collective/all_to_all.h"

#include <cstring>

#include "base/status.h"

namespace tutti::comm {

absl::Status PairwiseAllToAll(Links& links, const Chunks& input, const Chunks& output,
                              base::Deadline deadline) {
  const std::span<const std::byte> own = input[links.rank()];
  if (!own.empty()) std::memcpy(output[links.rank()].data(), own.data(), own.size());
  for (int i = 1; i < links.size(); ++i) {
    const int to = links.Right(i), from = links.Left(i);
    TUTTI_RETURN_IF_ERROR(links.Exchange(to, input[to], from, output[from], deadline));
  }
  return absl::OkStatus();
}

}  // namespace tutti::comm
