#include "platform/tracking/values/tracking_limits.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text/utf8.h"

namespace tutti::tracking {
namespace {

constexpr size_t kMostExperimentTag = 20'000;
constexpr size_t kMostDatasetSource = 65'535;
constexpr size_t kMostDatasetText = 1'048'575;

// Returns how many bytes the first `most` characters have; all, if there are no more.
size_t BytesOf(absl::string_view text, size_t most) {
  size_t bytes = 0;
  for (size_t i = 0; i < most && bytes < text.size(); ++i) {
    bytes += std::max<size_t>(base::Utf8Length(text.substr(bytes)), 1);
  }
  return bytes;
}

bool IsLonger(absl::string_view text, size_t most) { return BytesOf(text, most) < text.size(); }

std::string Cut(absl::string_view text, size_t most) {
  return std::string(text.substr(0, BytesOf(text, most)));
}

// Returns whether MLflow's keys may have the byte; letters of other scripts are beyond ASCII.
bool IsOfKey(char c) {
  return absl::ascii_isalnum(c) || absl::string_view("_-./: ").find(c) != std::string::npos ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Keys were names of files: none may lead elsewhere.
bool LeadsElsewhere(absl::string_view key) {
  for (const absl::string_view part : absl::StrSplit(key, '/')) {
    if (part.empty() || part == "." || part == "..") return true;
  }
  return false;
}

absl::Status TooMany(absl::string_view what, size_t most, size_t given) {
  return absl::InvalidArgumentError(absl::StrCat(
      "A batch logging request can contain at most ", most, " ", what, ". Got ", given, " ", what,
      ". Please split up ", what, " across multiple requests and try again."));
}

absl::Status CheckOneValueEach(const std::vector<KeyValue>& params) {
  std::map<absl::string_view, absl::string_view> seen;
  for (const KeyValue& param : params) {
    const auto [known, is_new] = seen.emplace(param.key, param.value);
    if (!is_new && known->second != param.value) {
      return absl::InvalidArgumentError(
          absl::StrCat("Duplicate parameter keys have been submitted: ", param.key,
                       ". A param has one value in a run."));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckKey(absl::string_view kind, absl::string_view key) {
  if (key.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Missing value for required parameter 'key' of a ", kind, "."));
  }
  if (IsLonger(key, kMostKeyLength)) {
    return absl::InvalidArgumentError(
        absl::StrCat("The name of a ", kind, " ('", Cut(key, kMostKeyLength),
                     "…') had more than the maximum length of ", kMostKeyLength, " characters."));
  }
  if (!std::all_of(key.begin(), key.end(), IsOfKey) || LeadsElsewhere(key)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Invalid ", kind, " name: '", key,
        "'. Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), spaces "
        "( ), colons (:) and slashes (/), and no empty part, '.' or '..' between slashes."));
  }
  return absl::OkStatus();
}

absl::Status CheckExperimentName(absl::string_view name) {
  if (name.empty()) {
    return absl::InvalidArgumentError("Invalid experiment name: it must not be empty.");
  }
  if (IsLonger(name, kMostNameLength)) {
    return absl::InvalidArgumentError(absl::StrCat("Experiment name exceeds the maximum length of ",
                                                   kMostNameLength, " characters."));
  }
  return absl::OkStatus();
}

absl::Status CheckLength(absl::string_view what, absl::string_view text, size_t most) {
  if (!IsLonger(text, most)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", what, "' exceeds the maximum length of ", most, " characters"));
}

absl::Status CheckExperimentTag(const KeyValue& tag) {
  TUTTI_RETURN_IF_ERROR(CheckKey("tag", tag.key));
  if (!IsLonger(tag.value, kMostExperimentTag)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'value' of an experiment's tag exceeds the ",
                                                 "maximum length of ", kMostExperimentTag,
                                                 " characters"));
}

absl::Status CheckInput(const DatasetInput& input) {
  const Dataset& dataset = input.dataset;
  const std::tuple<const char*, const std::string*, size_t> fields[] = {
      {"name", &dataset.name, kMostNameLength},
      {"digest", &dataset.digest, 36},
      {"source_type", &dataset.source_type, kMostNameLength},
      {"source", &dataset.source, kMostDatasetSource},
      {"schema", &dataset.schema, kMostDatasetText},
      {"profile", &dataset.profile, kMostDatasetText}};
  for (const auto& [name, value, most] : fields) {
    TUTTI_RETURN_IF_ERROR(CheckLength(absl::StrCat(name, " of a data set"), *value, most));
  }
  if (input.tags.size() > kMostTagsOfInput) {
    return TooMany("tags of a data set", kMostTagsOfInput, input.tags.size());
  }
  for (const KeyValue& tag : input.tags) {
    TUTTI_RETURN_IF_ERROR(CheckKey("tag", tag.key));
    TUTTI_RETURN_IF_ERROR(CheckLength("value of a data set's tag", tag.value, kMostInputTagLength));
  }
  return absl::OkStatus();
}

absl::Status CheckModel(const Model& model) {
  TUTTI_RETURN_IF_ERROR(CheckLength("name", model.name, kMostNameLength));
  TUTTI_RETURN_IF_ERROR(CheckLength("model_type", model.type, kMostNameLength));
  TUTTI_RETURN_IF_ERROR(CheckLength("source_run_id", model.source_run, kMostIdLength));
  for (const KeyValue& param : model.params) TUTTI_RETURN_IF_ERROR(CheckKey("param", param.key));
  for (const KeyValue& tag : model.tags) TUTTI_RETURN_IF_ERROR(CheckKey("tag", tag.key));
  return absl::OkStatus();
}

std::string CutParam(absl::string_view value) { return Cut(value, kMostParamLength); }

std::string CutTag(absl::string_view value) { return Cut(value, kMostTagLength); }

absl::Status CheckBatch(const Batch& batch) {
  if (batch.metrics.size() > kMostMetricsOfBatch) {
    return TooMany("metrics", kMostMetricsOfBatch, batch.metrics.size());
  }
  if (batch.params.size() > kMostParamsOfBatch) {
    return TooMany("params", kMostParamsOfBatch, batch.params.size());
  }
  if (batch.tags.size() > kMostTagsOfBatch) {
    return TooMany("tags", kMostTagsOfBatch, batch.tags.size());
  }
  const size_t all = batch.metrics.size() + batch.params.size() + batch.tags.size();
  if (all > kMostOfBatch) return TooMany("metrics, params, and tags", kMostOfBatch, all);
  for (const Metric& metric : batch.metrics) {
    TUTTI_RETURN_IF_ERROR(CheckKey("metric", metric.key));
    TUTTI_RETURN_IF_ERROR(CheckLength("model_id", metric.model, kMostIdLength));
    TUTTI_RETURN_IF_ERROR(CheckLength("dataset_name", metric.dataset_name, kMostNameLength));
    TUTTI_RETURN_IF_ERROR(CheckLength("dataset_digest", metric.dataset_digest, kMostIdLength));
  }
  for (const KeyValue& param : batch.params) TUTTI_RETURN_IF_ERROR(CheckKey("param", param.key));
  for (const KeyValue& tag : batch.tags) TUTTI_RETURN_IF_ERROR(CheckKey("tag", tag.key));
  return CheckOneValueEach(batch.params);
}

}  // namespace tutti::tracking
