// Measures what batches of a model cost, and from that how large they may be.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "runtime/scoring/trained_model.h"

namespace tutti::scoring {

struct BatchPlan {
  std::vector<std::pair<size_t, absl::Duration>> times;  // of batches by size, ascending
  absl::Duration max_latency;                            // which no batch is to exceed
  size_t limit = 1;                                      // images in the largest batch

  // Returns the time of an image in the largest batch.
  double image_seconds() const;
  // Returns "batches up to 8 images in at most 6.2 ms (2.1 ms alone)".
  std::string Describe() const;
};

// Runs a model over grey images in batches of 1, 2, 4, …, until a batch takes longer than
// `max_latency`, or than two lone requests if that is zero. The time of a size is the shortest of a
// few runs. The limit lies between two sizes where their times say so.
BatchPlan MeasureBatches(Servable& model, absl::Duration max_latency);

}  // namespace tutti::scoring
