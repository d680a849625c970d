#include "spec/types/enum_names.h"

#include <array>
#include <utility>

namespace tutti::spec {
namespace {

constexpr std::array<std::pair<Priority, absl::string_view>, 3> kPriorityNames = {{
    {Priority::kLow, "low"},
    {Priority::kNormal, "normal"},
    {Priority::kHigh, "high"},
}};

constexpr std::array<std::pair<JobKind, absl::string_view>, 3> kJobKinds = {{
    {JobKind::kCommand, "command"},
    {JobKind::kPipeline, "pipeline"},
    {JobKind::kSweep, "sweep"},
}};

constexpr std::array<std::pair<SearchKind, absl::string_view>, 10> kSearchKinds = {{
    {SearchKind::kChoice, "choice"},
    {SearchKind::kRandInt, "randint"},
    {SearchKind::kUniform, "uniform"},
    {SearchKind::kQUniform, "quniform"},
    {SearchKind::kLogUniform, "loguniform"},
    {SearchKind::kQLogUniform, "qloguniform"},
    {SearchKind::kNormal, "normal"},
    {SearchKind::kQNormal, "qnormal"},
    {SearchKind::kLogNormal, "lognormal"},
    {SearchKind::kQLogNormal, "qlognormal"},
}};

constexpr std::array<std::pair<Sampling, absl::string_view>, 4> kSamplings = {{
    {Sampling::kRandom, "random"},
    {Sampling::kSobol, "sobol"},
    {Sampling::kGrid, "grid"},
    {Sampling::kBayesian, "bayesian"},
}};

constexpr std::array<std::pair<EarlyTermination::Kind, absl::string_view>, 4> kTerminations = {{
    {EarlyTermination::Kind::kNone, "none"},
    {EarlyTermination::Kind::kBandit, "bandit"},
    {EarlyTermination::Kind::kMedianStopping, "median_stopping"},
    {EarlyTermination::Kind::kTruncationSelection, "truncation_selection"},
}};

constexpr std::array<std::pair<StoreKind, absl::string_view>, 7> kStores = {{
    {StoreKind::kLocal, "local"},
    {StoreKind::kAzureBlob, "azure_blob"},
    {StoreKind::kAzureDataLake, "azure_data_lake"},
    {StoreKind::kAzureFile, "azure_file"},
    {StoreKind::kS3, "s3"},
    {StoreKind::kGcs, "gcs"},
    {StoreKind::kNfs, "nfs"},
}};

constexpr std::array<std::pair<CredentialKind, absl::string_view>, 5> kCredentials = {{
    {CredentialKind::kNone, "none"},
    {CredentialKind::kAccountKey, "account_key"},
    {CredentialKind::kSas, "sas"},
    {CredentialKind::kServicePrincipal, "service_principal"},
    {CredentialKind::kAccessKey, "access_key"},
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

absl::string_view Name(Priority priority) { return NameIn(kPriorityNames, priority); }

std::optional<Priority> PriorityFromName(absl::string_view name) {
  return ValueIn(kPriorityNames, name);
}

absl::string_view Name(JobKind kind) { return NameIn(kJobKinds, kind); }
absl::string_view Name(SearchKind kind) { return NameIn(kSearchKinds, kind); }
absl::string_view Name(Sampling sampling) { return NameIn(kSamplings, sampling); }
absl::string_view Name(EarlyTermination::Kind kind) { return NameIn(kTerminations, kind); }

std::optional<JobKind> JobKindFromName(absl::string_view name) { return ValueIn(kJobKinds, name); }

std::optional<SearchKind> SearchKindFromName(absl::string_view name) {
  return ValueIn(kSearchKinds, name);
}

std::optional<Sampling> SamplingFromName(absl::string_view name) {
  return ValueIn(kSamplings, name);
}

std::optional<EarlyTermination::Kind> EarlyTerminationFromName(absl::string_view name) {
  return ValueIn(kTerminations, name);
}

absl::string_view StoreName(StoreKind kind) { return NameIn(kStores, kind); }
absl::string_view CredentialName(CredentialKind kind) { return NameIn(kCredentials, kind); }

std::optional<StoreKind> StoreFromName(absl::string_view name) { return ValueIn(kStores, name); }

std::optional<CredentialKind> CredentialFromName(absl::string_view name) {
  return ValueIn(kCredentials, name);
}

std::array<absl::string_view, 10> SearchKindNames() {
  std::array<absl::string_view, 10> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kSearchKinds[i].second;
  return names;
}

}  // namespace tutti::spec
