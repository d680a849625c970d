#include "runtime/train/gather_measurements.h"

#include <algorithm>
#include <array>

#include "base/status.h"

namespace tutti::train {

absl::StatusOr<std::vector<StepParts>> GatherParts(const StepParts& own,
                                                   parallel::Strategy& strategy,
                                                   base::Deadline deadline) {
  constexpr size_t kParts = kStepParts.size();
  const auto rank = static_cast<size_t>(strategy.rank());
  std::vector<StepParts> ranks(static_cast<size_t>(strategy.world_size()));
  std::vector<double> table(kParts * ranks.size());
  for (size_t i = 0; i < kParts; ++i) table[kParts * rank + i] = own.*kStepParts[i].seconds;
  TUTTI_RETURN_IF_ERROR(strategy.SumOverRanks(table, deadline));
  for (size_t r = 0; r < ranks.size(); ++r) {
    for (size_t i = 0; i < kParts; ++i) ranks[r].*kStepParts[i].seconds = table[kParts * r + i];
  }
  return ranks;
}

absl::StatusOr<std::vector<std::vector<parallel::Figure>>> GatherFigures(
    parallel::Strategy& strategy, base::Deadline deadline) {
  const std::vector<parallel::Figure> own = strategy.Figures();
  std::vector<std::vector<parallel::Figure>> ranks(static_cast<size_t>(strategy.world_size()), own);
  if (own.empty()) return ranks;
  std::vector<double> table(own.size() * ranks.size());
  const size_t begin = static_cast<size_t>(strategy.rank()) * own.size();
  for (size_t i = 0; i < own.size(); ++i) table[begin + i] = own[i].value;
  TUTTI_RETURN_IF_ERROR(strategy.SumOverRanks(table, deadline));
  for (size_t i = 0; i < table.size(); ++i) ranks[i / own.size()][i % own.size()].value = table[i];
  return ranks;
}

absl::Status BeginTogether(Trace& trace, parallel::Strategy& strategy, base::Deadline deadline) {
  std::array<double, 1> nothing = {};
  TUTTI_RETURN_IF_ERROR(strategy.SumOverRanks(nothing, deadline));
  trace.Begin(base::SteadyNow());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<TraceSpan>>> GatherTrace(const Trace& trace,
                                                                parallel::Strategy& strategy,
                                                                base::Deadline deadline) {
  const std::vector<TraceSpan> own = trace.Spans();
  const auto ranks = static_cast<size_t>(strategy.world_size());
  std::vector<std::vector<TraceSpan>> gathered(strategy.rank() == 0 ? ranks : 0);
  // The first number says how many spans follow.
  std::vector<double> table;
  for (size_t rank = 0; rank < ranks; ++rank) {
    table.assign(1 + 4 * trace.capacity(), 0);
    if (static_cast<int>(rank) == strategy.rank()) {
      table[0] = static_cast<double>(own.size());
      const auto* numbers = reinterpret_cast<const double*>(own.data());
      std::copy_n(numbers, 4 * own.size(), table.begin() + 1);
    }
    TUTTI_RETURN_IF_ERROR(strategy.SumOverRanks(table, deadline));
    if (strategy.rank() != 0) continue;
    gathered[rank].resize(static_cast<size_t>(table[0]));
    std::copy_n(table.begin() + 1, 4 * gathered[rank].size(),
                reinterpret_cast<double*>(gathered[rank].data()));
  }
  return gathered;
}

}  // namespace tutti::train
