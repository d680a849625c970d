#include "runtime/comm/collective/all_reduce.h"

#include "runtime/comm/collective/halving_doubling.h"
#include "runtime/comm/collective/latency_optimal.h"
#include "runtime/comm/collective/ring.h"
#include "runtime/comm/collective/selection.h"

namespace tutti::comm {

absl::Status AllReduce(Links& links, std::byte* data, size_t count, const Reduction& reduction,
                       base::Deadline deadline) {
  const size_t bytes = count * SizeOf(reduction.type);
  switch (ChooseAllReduce(bytes, links.size(), links.cost())) {
    case AllReduceAlgorithm::kDoubling:
      return DoublingAllReduce(links, {data, bytes}, reduction, deadline);
    case AllReduceAlgorithm::kHalvingDoubling:
      return HalvingDoublingAllReduce(links, data, count, reduction, deadline);
    case AllReduceAlgorithm::kRing:
      break;
  }
  return RingAllReduce(links, data, count, reduction, deadline);
}

}  // namespace tutti::comm
