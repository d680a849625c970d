// Converts the enumerations of job.h to and from the names that files and documents write.
#pragma once

#include <array>
#include <optional>

#include "absl/strings/string_view.h"
#include "spec/types/data_place.h"
#include "spec/types/job.h"

namespace tutti::spec {

// Returns "low", "normal", "high".
absl::string_view Name(Priority priority);
std::optional<Priority> PriorityFromName(absl::string_view name);

// Returns "command", "pipeline", "sweep".
absl::string_view Name(JobKind kind);
std::optional<JobKind> JobKindFromName(absl::string_view name);

// Returns "choice", "randint", "uniform", …, as search_space writes them.
absl::string_view Name(SearchKind kind);
std::optional<SearchKind> SearchKindFromName(absl::string_view name);
std::array<absl::string_view, 10> SearchKindNames();

// Returns "random", "sobol", "grid", "bayesian".
absl::string_view Name(Sampling sampling);
std::optional<Sampling> SamplingFromName(absl::string_view name);

// Returns "none", "bandit", "median_stopping", "truncation_selection".
absl::string_view Name(EarlyTermination::Kind kind);
std::optional<EarlyTermination::Kind> EarlyTerminationFromName(absl::string_view name);

// Returns "local", "azure_blob", "azure_data_lake", "azure_file", "s3", "gcs".
absl::string_view StoreName(StoreKind kind);
std::optional<StoreKind> StoreFromName(absl::string_view name);

// Returns "none", "account_key", "sas", "service_principal", "access_key".
absl::string_view CredentialName(CredentialKind kind);
std::optional<CredentialKind> CredentialFromName(absl::string_view name);

}  // namespace tutti::spec
