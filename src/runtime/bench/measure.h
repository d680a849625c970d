// Measures the trainer's own step on synthetic images, and the link under it, in a group of ranks.
// Every rank of the group makes the same calls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/bench/step_model.h"
#include "runtime/comm/communicator.h"
#include "runtime/train/recipe/recipe.h"
#include "runtime/train/report/meter.h"

namespace tutti::bench {

struct StepSetup {
  std::string model = "resnet20";
  std::string precision = "fp32";   // or "bf16"
  int64_t batch = 32;               // images per step and rank
  int64_t warm_up = 3, steps = 12;  // of which the latter are measured
  std::string device = "cpu";       // or "cuda", "auto"
  absl::Duration timeout = absl::Seconds(300);
  train::Recipe recipe;  // the optimizer, and what else of a step is not said above
};

struct MeasuredStep {
  train::StepParts parts;            // of this rank, in the step of median length
  std::vector<double> bucket_bytes;  // of gradients, in the order of their all-reduces
  double waited = 0;  // share of the time in which the calling thread had no processor, on a CPU
};

// Returns how many classes a network has here: CIFAR's 10 where its images are small, else
// ImageNet's 1000.
int64_t ClassesFor(const std::string& model);

// Measures a step. NotFound: no such model. Errors of collectives name the rank.
absl::StatusOr<MeasuredStep> MeasureStep(const StepSetup& setup,
                                         std::unique_ptr<comm::Communicator> group);

// Measures the median times of all-reduces of 1 KiB to 16 MiB in fp32, in the memory that gradients
// lie in; none in a group of one.
absl::StatusOr<std::vector<AllReduceTime>> MeasureLink(comm::Communicator& group,
                                                       absl::Duration timeout);

}  // namespace tutti::bench
