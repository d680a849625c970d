#include "spec/names.h"

#include <array>
#include <utility>

namespace tutti::spec {
namespace {

constexpr std::array<std::pair<DistributionKind, absl::string_view>, 4> kDistributions = {{
    {DistributionKind::kNone, "none"},
    {DistributionKind::kMpi, "mpi"},
    {DistributionKind::kPyTorch, "pytorch"},
    {DistributionKind::kTensorFlow, "tensorflow"},
}};

constexpr std::array<std::pair<Priority, absl::string_view>, 3> kPriorities = {{
    {Priority::kLow, "low"},
    {Priority::kNormal, "normal"},
    {Priority::kHigh, "high"},
}};

template <typename Table, typename Value>
absl::string_view NameIn(const Table& table, Value value) {
  for (const auto& [known, name] : table) {
    if (known == value) return name;
  }
  return "unknown";
}

template <typename Value, size_t n>
std::optional<Value> ValueIn(const std::array<std::pair<Value, absl::string_view>, n>& table,
                             absl::string_view name) {
  for (const auto& [value, known] : table) {
    if (known == name) return value;
  }
  return std::nullopt;
}

}  // namespace

absl::string_view Name(DistributionKind kind) { return NameIn(kDistributions, kind); }
absl::string_view Name(Priority priority) { return NameIn(kPriorities, priority); }

std::optional<DistributionKind> DistributionKindFromName(absl::string_view name) {
  return ValueIn(kDistributions, name);
}

std::optional<Priority> PriorityFromName(absl::string_view name) {
  return ValueIn(kPriorities, name);
}

}  // namespace tutti::spec
