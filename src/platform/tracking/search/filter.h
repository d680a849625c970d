// Parses the language in which MLflow's clients say which runs or experiments they look for:
//
//   metrics.loss < 0.5 and params.`batch size` = '32' and tags.mlflow.source.type = 'JOB'
//
// Comparisons that all hold; there is no OR and there are no parentheses but those of lists.
// Errors are InvalidArgument and name the place. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::tracking {

enum class Entity { kMetric, kParam, kTag, kAttribute, kDataset };

enum class Operator {
  kEqual,
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kLike,   // by letters and their case
  kILike,  // whatever the case of ASCII's letters
  kIn,
  kNotIn,
  kIsNull,
  kIsNotNull
};

// Subject is what is searched for: each has attributes of its own.
enum class Subject { kRuns, kExperiments, kModels };

struct Comparison {
  Entity entity = Entity::kAttribute;
  std::string key;  // of an attribute its canonical name: "start_time", not "created"
  Operator op = Operator::kEqual;
  double number = 0;               // of metrics and attributes that are numbers
  std::vector<std::string> texts;  // of all else: one, or those of a list
};

struct Ordering {
  Entity entity = Entity::kAttribute;
  std::string key;
  bool ascending = true;
};

inline constexpr size_t kMostFilterBytes = 10'000;
inline constexpr size_t kMostPatternBytes = 500;  // of LIKE: each of a text's bytes may be tried
inline constexpr size_t kMostComparisons = 100;
inline constexpr size_t kMostOrderings = 20;
inline constexpr size_t kMostOfList = 1'000;

// Reads a filter; an empty one has no comparison.
absl::StatusOr<std::vector<Comparison>> ParseFilter(absl::string_view filter, Subject subject);
// Reads "metrics.loss DESC", "start_time" and the like.
absl::StatusOr<Ordering> ParseOrdering(absl::string_view text, Subject subject);
// Returns whether an attribute is a number.
bool IsNumber(absl::string_view attribute);

}  // namespace tutti::tracking
