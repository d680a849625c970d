#include "runtime/comm/collective/selection.h"

#include <algorithm>
#include <bit>
#include <initializer_list>

namespace tutti::comm {

double PredictedSeconds(AllReduceAlgorithm algorithm, size_t bytes, int ranks,
                        const LinkCost& cost) {
  const unsigned count = static_cast<unsigned>(ranks);
  const double n = ranks;
  const double p = std::bit_floor(count);
  const double hops = std::bit_width(count) - 1;
  const bool folds = !std::has_single_bit(count);
  const double sent = static_cast<double>(bytes) * cost.beta;
  const double added = static_cast<double>(bytes) * cost.gamma;
  switch (algorithm) {
    case AllReduceAlgorithm::kDoubling:
      return hops * (cost.alpha + sent + 3 * added) +
             (folds ? 2 * cost.alpha + 2 * sent + 3 * added : 0);
    case AllReduceAlgorithm::kHalvingDoubling:
      return 2 * hops * cost.alpha + (p - 1) / p * (2 * sent + added) +
             (folds ? 3 * cost.alpha + 2 * sent + added / 2 : 0);
    case AllReduceAlgorithm::kRing:
      return 2 * (n - 1) * cost.alpha + (n - 1) / n * (std::max(sent, added) + sent);
  }
  return 0;
}

AllReduceAlgorithm ChooseAllReduce(size_t bytes, int ranks, const LinkCost& cost) {
  AllReduceAlgorithm best = AllReduceAlgorithm::kRing;
  for (const auto other : {AllReduceAlgorithm::kHalvingDoubling, AllReduceAlgorithm::kDoubling}) {
    if (PredictedSeconds(other, bytes, ranks, cost) < PredictedSeconds(best, bytes, ranks, cost)) {
      best = other;
    }
  }
  return best;
}

}  // namespace tutti::comm
