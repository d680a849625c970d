// Reads what one node has shown: from the metrics of a training on it (docs/formats/metrics.md), or
// from a plan that was printed as JSON. Pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/bench/plan/prediction.h"

namespace tutti::bench {

// What the user says where metrics do not; 0: nothing.
struct SaidFacts {
  double batch = 0;           // images per step and rank; where metrics tell one, another to plan
  double gradient_bytes = 0;  // of a rank
  int ranks = 0;              // of the node
};

// Reads JSON lines of tutti-train, or of a script that tells images_per_second. The step is that of
// median length, without the first line's, in which a run warms up. InvalidArgument says what
// lacks, and how to say it.
absl::StatusOr<NodeFacts> FactsOfMetrics(absl::string_view lines, const SaidFacts& said);

// Reads the "facts" of a plan's document. InvalidArgument: it has none, or lacks something.
absl::StatusOr<NodeFacts> FactsOfPlan(const nlohmann::json& document);

// Returns them as FactsOfPlan reads them.
nlohmann::ordered_json AsJson(const NodeFacts& facts);

}  // namespace tutti::bench
