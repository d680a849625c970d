#include "runtime/bench/plan/measure_node.h"

#include <ATen/Parallel.h>
#include <sys/resource.h>
#include <time.h>
#include <torch/types.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status.h"
#include "runtime/bench/measure.h"
#include "runtime/comm/communicator.h"
#include "runtime/device/device.h"
#include "runtime/device/memory_speed.h"
#include "runtime/models/model.h"
#include "runtime/parallel/lap.h"
#include "runtime/train/setup/input.h"
#include "runtime/train/setup/precision.h"
#include "runtime/train/setup/prepare_machine.h"

namespace tutti::bench {
namespace {

constexpr int64_t kPartOfTheBatch = 4;
constexpr int64_t kLeastSteps = 5, kMostSteps = 400, kLeastWarmUp = 2;
constexpr int64_t kBatchesAhead = 5;  // filled before they are asked for, and so not timed
constexpr int64_t kLookedAt = 64;     // images, for their bytes
constexpr absl::Duration kPatienceOfPlan = absl::Seconds(300);

double ProcessorSecondsOfProcess() {
  timespec time = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Of this process, at most so far.
double ResidentBytes() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

// Alone in its group, for about so long.
absl::StatusOr<MeasuredStep> StepOf(StepSetup setup, int64_t batch, absl::Duration seconds) {
  const auto measure = [&]() -> absl::StatusOr<MeasuredStep> {
    TUTTI_ASSIGN_OR_RETURN(auto alone, comm::JoinGroup({}));
    return MeasureStep(setup, std::move(alone));
  };
  setup.batch = batch;
  setup.warm_up = setup.steps = 1;
  TUTTI_ASSIGN_OR_RETURN(const MeasuredStep first, measure());
  const double fit = absl::ToDoubleSeconds(seconds) / first.parts.Sum();
  setup.steps = std::clamp(static_cast<int64_t>(fit), kLeastSteps, kMostSteps);
  setup.warm_up = std::max(kLeastWarmUp, setup.steps / 4);
  return measure();
}

// At a quarter of the batch and then at the batch, so that the memory tells of both.
absl::Status MeasureSteps(const StepSetup& setup, int64_t batch, absl::Duration seconds,
                          NodeFacts& facts) {
  std::optional<MeasuredStep> part;
  const int64_t less = batch / kPartOfTheBatch;
  if (less > 0) {
    TUTTI_ASSIGN_OR_RETURN(part, StepOf(setup, less, seconds / 2));
  }
  const double before = ResidentBytes();
  TUTTI_ASSIGN_OR_RETURN(const MeasuredStep step, StepOf(setup, batch, seconds));
  facts.parts = step.parts;
  facts.bucket_bytes = step.bucket_bytes;
  facts.waited = step.waited;
  if (!part) return absl::OkStatus();
  facts.fixed =
      FixedShare(step.parts, part->parts, static_cast<double>(less) / static_cast<double>(batch));
  if (setup.device != "cpu") return absl::OkStatus();  // a GPU's memory is not the process's
  facts.memory = ResidentBytes();
  facts.memory_of_an_image = (facts.memory - before) / static_cast<double>(batch - less);
  return absl::OkStatus();
}

double BytesPerImage(const data::Dataset& images) {
  std::string scratch;
  double bytes = 0;
  const int64_t count = std::min(kLookedAt, images.size());
  for (int64_t i = 0; i < count; ++i) {
    const auto encoded = images.Encoded(i * images.size() / count, scratch);
    if (encoded.ok()) bytes += static_cast<double>(encoded->size());
  }
  return bytes / static_cast<double>(std::max<int64_t>(count, 1));
}

absl::Status MeasureLoader(train::Recipe recipe, absl::Duration seconds, NodeFacts& facts) {
  recipe.batch = static_cast<int64_t>(facts.batch);
  const int64_t own = models::InputSize(recipe.model);
  const train::ModelInputSpec spec{recipe.input_size > 0 ? recipe.input_size : own};
  TUTTI_ASSIGN_OR_RETURN(const train::Input input, train::OpenInput(recipe, spec));
  const auto next = [&]() -> absl::StatusOr<int64_t> {
    TUTTI_ASSIGN_OR_RETURN(const auto batch,
                           input.train->Next(base::Deadline::After(kPatienceOfPlan)));
    return batch.count;
  };
  for (int64_t i = 0; i < kBatchesAhead; ++i) TUTTI_RETURN_IF_ERROR(next().status());
  parallel::LapTimer timer;
  const double processor = ProcessorSecondsOfProcess();
  double images = 0, spent = 0;
  while (spent < absl::ToDoubleSeconds(seconds)) {
    TUTTI_ASSIGN_OR_RETURN(const int64_t count, next());
    images += static_cast<double>(count);
    spent += timer.Lap();
  }
  facts.loader.images_per_second = images / spent;
  facts.loader.processor_seconds = (ProcessorSecondsOfProcess() - processor) / images;
  facts.loader.bytes_per_image = BytesPerImage(*input.train_images);
  facts.loader.workers = recipe.workers;
  facts.train_images = input.train_images->size();
  return absl::OkStatus();
}

double WireShare(const std::string& compression) {
  if (compression == "int8") return 0.25;
  return compression == "none" ? 1 : 0.5;
}

NodeFacts FactsOfRecipe(const train::Recipe& recipe, const NodeMeasurement& measurement) {
  NodeFacts facts;
  facts.model = recipe.model;
  facts.cores = measurement.cores;
  facts.ranks_per_node = measurement.ranks_per_node;
  facts.batch_is_shared = recipe.batch_per_rank == 0;
  facts.learning_rate = recipe.lr;
  facts.rate_rule = recipe.scale_lr      ? RateRule::kPerImage
                    : recipe.lr_per_rank ? RateRule::kPerRank
                                         : RateRule::kAsItIs;
  facts.warmup_epochs = recipe.warmup_epochs;
  facts.wire_share = WireShare(recipe.compression);
  return facts;
}

}  // namespace

absl::StatusOr<NodeFacts> MeasureNode(const train::Recipe& recipe,
                                      const NodeMeasurement& measurement) {
  NodeFacts facts = FactsOfRecipe(recipe, measurement);
  const int64_t batch = recipe.batch_per_rank > 0
                            ? recipe.batch_per_rank
                            : std::max<int64_t>(1, recipe.batch / measurement.ranks_per_node);
  TUTTI_ASSIGN_OR_RETURN(const torch::Device device, device::Open(recipe.device));
  const int64_t threads = recipe.threads > 0
                              ? recipe.threads
                              : std::max<int64_t>(1, static_cast<int64_t>(measurement.cores) /
                                                         measurement.ranks_per_node);
  train::PrepareMachine(threads, device.is_cuda());
  TUTTI_ASSIGN_OR_RETURN(auto alone, comm::JoinGroup({}));
  TUTTI_ASSIGN_OR_RETURN(const train::PrecisionTaken taken,
                         train::TakePrecision(recipe.precision, /*kept=*/"", device, *alone,
                                              base::Deadline::After(kPatienceOfPlan)));
  StepSetup setup;
  setup.model = recipe.model;
  setup.recipe = recipe;
  setup.precision = facts.precision = taken.precision;
  setup.device = facts.device = device.is_cuda() ? "cuda" : "cpu";
  facts.threads = at::get_num_threads();
  facts.batch = static_cast<double>(batch);
  TUTTI_RETURN_IF_ERROR(MeasureSteps(setup, batch, measurement.seconds, facts));
  const bool adds_in_memory = measurement.ranks_per_node > 1 && device.is_cpu();
  if (adds_in_memory) facts.memory_speed = device::MeasureMemorySpeed();
  train::Recipe read = recipe;
  read.precision = taken.precision;
  if (!recipe.data.empty()) TUTTI_RETURN_IF_ERROR(MeasureLoader(read, measurement.seconds, facts));
  return facts;
}

absl::StatusOr<double> GradientBytes(const std::string& model) {
  TUTTI_ASSIGN_OR_RETURN(const models::Model made,
                         models::MakeModel({model, ClassesFor(model)}, std::nullopt));
  double bytes = 0;
  for (const auto& parameter : made->parameters()) bytes += 4.0 * double(parameter.numel());
  return bytes;
}

}  // namespace tutti::bench
