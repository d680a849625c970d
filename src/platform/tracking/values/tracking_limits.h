// Checks what MLflow allows in names and values, and how much of each may come in one call. Errors
// are InvalidArgument, in MLflow's words where its clients read them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "platform/tracking/values/values.h"

namespace tutti::tracking {

inline constexpr size_t kMostMetricsOfBatch = 1000;
inline constexpr size_t kMostParamsOfBatch = 100;
inline constexpr size_t kMostTagsOfBatch = 100;
inline constexpr size_t kMostOfBatch = 1000;
inline constexpr size_t kMostKeyLength = 250;  // characters, as all lengths here
inline constexpr size_t kMostParamLength = 6000;
inline constexpr size_t kMostTagLength = 8000;
inline constexpr size_t kMostNameLength = 500;
inline constexpr size_t kMostLocationLength = 2000;
inline constexpr size_t kMostRunNameLength = 250;
inline constexpr size_t kMostUserLength = 256;
inline constexpr size_t kMostIdLength = 100;  // of a run, a model, a digest
inline constexpr size_t kMostInputTagLength = 500;
inline constexpr size_t kMostTagsOfInput = 100;
// A run that has more of one kind is none that anybody looks at: it would fill an answer.
inline constexpr int64_t kMostKeysOfRun = 100'000;
inline constexpr int64_t kMostTextsOfRun = 10'000;  // params, and tags
inline constexpr int64_t kMostInputsOfRun = 1'000;  // data sets, models used, models made
inline constexpr int64_t kMostInputBytesOfRun = int64_t{16} << 20;
inline constexpr int64_t kMostTextsOfOthers = 1'000;  // tags of an experiment, and so on

// Checks the key of a metric, a param or a tag (`kind`, for the error).
absl::Status CheckKey(absl::string_view kind, absl::string_view key);
absl::Status CheckExperimentName(absl::string_view name);
absl::Status CheckExperimentTag(const KeyValue& tag);
// Checks a text that has no other rule (`what`, for the error).
absl::Status CheckLength(absl::string_view what, absl::string_view text, size_t most);
absl::Status CheckInput(const DatasetInput& input);
absl::Status CheckModel(const Model& model);
// Cuts a value that is too long, as MLflow does: autologging counts on that.
std::string CutParam(absl::string_view value);
std::string CutTag(absl::string_view value);

struct Batch {
  std::vector<Metric> metrics;
  std::vector<KeyValue> params, tags;
};

// Checks sizes and keys, and that no param has two values.
absl::Status CheckBatch(const Batch& batch);

}  // namespace tutti::tracking
