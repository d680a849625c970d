#include "runtime/bench/measure.h"

#include <time.h>
#include <torch/types.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/comm/shared_buffer.h"
#include "runtime/device/device.h"
#include "runtime/models/model.h"
#include "runtime/parallel/bucket.h"
#include "runtime/parallel/lap.h"
#include "runtime/train/setup/precision.h"
#include "runtime/train/setup/run_parts.h"

namespace tutti::bench {
namespace {

constexpr int64_t kClassesOfSmallInputs = 10, kClasses = 1000;
constexpr int64_t kSmallInput = 64;
constexpr size_t kSmallest = 1 << 10, kLargest = 16 << 20;
constexpr int kRounds = 9;

double ProcessorSecondsOfThread() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

parallel::Batch MakeBatch(const StepSetup& setup, int64_t side, int64_t classes, bool bf16) {
  const auto images = torch::randn({setup.batch, 3, side, side})
                          .to(bf16 ? torch::kBFloat16 : torch::kFloat32)
                          .contiguous(torch::MemoryFormat::ChannelsLast);
  return {{images}, torch::randint(classes, {setup.batch}, torch::kInt64)};
}

absl::StatusOr<train::StepParts> OneStep(parallel::Strategy& strategy, const parallel::Batch& batch,
                                         absl::Duration timeout) {
  parallel::LapTimer timer;
  train::StepParts parts;
  TUTTI_ASSIGN_OR_RETURN(
      const parallel::StepResult result,
      strategy.Step(batch, /*learning_rate=*/1e-4, base::Deadline::After(timeout)));
  parts.backward = result.times.backward;
  parts.communication = result.times.communication;
  parts.optimizer = result.times.update;
  parts.forward = timer.Lap() - parts.backward - parts.communication - parts.optimizer;
  return parts;
}

}  // namespace

int64_t ClassesFor(const std::string& model) {
  return models::InputSize(model) <= kSmallInput ? kClassesOfSmallInputs : kClasses;
}

absl::StatusOr<MeasuredStep> MeasureStep(const StepSetup& setup,
                                         std::unique_ptr<comm::Communicator> group) {
  TUTTI_ASSIGN_OR_RETURN(const torch::Device device, device::Open(setup.device));
  train::Recipe recipe = setup.recipe;
  recipe.model = setup.model;
  recipe.precision = setup.precision;
  if (models::PurposeOf(setup.model) != models::Purpose::kClassification) {
    return absl::InvalidArgumentError(
        absl::StrCat(setup.model, ": only networks of classification are measured"));
  }
  const int64_t own = models::InputSize(setup.model);
  const int64_t side = recipe.input_size > 0 ? recipe.input_size : own;
  const int64_t classes = ClassesFor(setup.model);
  TUTTI_ASSIGN_OR_RETURN(const models::Model model, models::MakeModel({setup.model, classes}, 1));
  TUTTI_ASSIGN_OR_RETURN(const auto strategy,
                         train::MakeStrategy(recipe, model, std::move(group), device));
  TUTTI_RETURN_IF_ERROR(strategy->Synchronize(base::Deadline::After(setup.timeout)));

  torch::manual_seed(1);
  const auto batch = MakeBatch(setup, side, classes, setup.precision == "bf16");
  std::vector<train::StepParts> steps;
  double spent = 0, computed = 0;
  for (int64_t step = 0; step < setup.warm_up + setup.steps; ++step) {
    const double before = ProcessorSecondsOfThread();
    TUTTI_ASSIGN_OR_RETURN(const train::StepParts parts, OneStep(*strategy, batch, setup.timeout));
    if (step < setup.warm_up) continue;
    steps.push_back(parts);
    spent += parts.Sum() - parts.communication;
    computed += ProcessorSecondsOfThread() - before;
  }
  TUTTI_RETURN_IF_ERROR(strategy->Settle(base::Deadline::After(setup.timeout)).status());
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end(),
                   [](const auto& a, const auto& b) { return a.Sum() < b.Sum(); });
  MeasuredStep measured{*middle, {}};
  if (device.is_cpu() && spent > 0) measured.waited = std::max(0.0, 1 - computed / spent);
  for (const auto& bucket : strategy->buckets()) {
    measured.bucket_bytes.push_back(static_cast<double>(bucket->gradients().nbytes()));
  }
  return measured;
}

absl::StatusOr<std::vector<AllReduceTime>> MeasureLink(comm::Communicator& group,
                                                       absl::Duration timeout) {
  std::vector<AllReduceTime> times;
  if (group.size() == 1) return times;
  TUTTI_ASSIGN_OR_RETURN(const auto memory, group.AllocateShared(kLargest));
  std::memset(memory->data(), 0, kLargest);
  for (size_t bytes = kSmallest; bytes <= kLargest; bytes *= 4) {
    std::vector<double> rounds;
    for (int round = 0; round < kRounds; ++round) {
      TUTTI_RETURN_IF_ERROR(group.Barrier(base::Deadline::After(timeout)));
      parallel::LapTimer timer;
      TUTTI_RETURN_IF_ERROR(group.AllReduce(memory->data(), bytes / sizeof(float),
                                            comm::DataType::kFloat32, comm::ReduceOp::kSum,
                                            base::Deadline::After(timeout)));
      rounds.push_back(timer.Lap());
    }
    std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
    times.push_back({static_cast<double>(bytes), rounds[kRounds / 2]});
  }
  return times;
}

}  // namespace tutti::bench
