#include "runtime/train/optimizer/schedule.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

namespace tutti::train {

std::vector<absl::string_view> Schedule::Names() {
  std::vector<absl::string_view> names;
  for (const auto& [name, kind] : kNames) names.push_back(name);
  return names;
}

Schedule::Kind Schedule::KindOf(absl::string_view name) {
  const auto* const found = std::find_if(std::begin(kNames), std::end(kNames),
                                         [name](const auto& entry) { return entry.first == name; });
  return found == std::end(kNames) ? Kind::kCosine : found->second;
}

double Schedule::LearningRate(int64_t step) const {
  if (step < warmup_steps) {
    return peak * static_cast<double>(step + 1) / static_cast<double>(warmup_steps + 1);
  }
  switch (kind) {
    case Kind::kConstant:
      return peak;
    case Kind::kStep: {
      const auto reached = std::upper_bound(milestones.begin(), milestones.end(), step);
      return peak * std::pow(gamma, static_cast<double>(reached - milestones.begin()));
    }
    case Kind::kCosine:
      break;
  }
  const double length = static_cast<double>(std::max<int64_t>(total_steps - warmup_steps, 1));
  const double part = std::min(1.0, static_cast<double>(step - warmup_steps) / length);
  return last + (peak - last) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

double ScaledToBatch(double rate, int64_t global_batch) {
  return rate * static_cast<double>(global_batch) / 256;
}

}  // namespace tutti::train
