// The names of the enumerations in job.h, as files and documents write them.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "spec/job.h"

namespace tutti::spec {

// "none", "mpi", "pytorch", "tensorflow".
absl::string_view Name(DistributionKind kind);
std::optional<DistributionKind> DistributionKindFromName(absl::string_view name);

// "low", "normal", "high".
absl::string_view Name(Priority priority);
std::optional<Priority> PriorityFromName(absl::string_view name);

}  // namespace tutti::spec
