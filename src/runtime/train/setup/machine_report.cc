#include "runtime/train/setup/machine_report.h"

#include <ATen/Parallel.h>
#include <time.h>
#include <torch/types.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/machine/instruction_set.h"
#include "base/status.h"
#include "runtime/comm/communicator.h"
#include "runtime/device/device.h"
#include "runtime/device/memory_speed.h"
#include "runtime/device/precision/detect.h"
#include "runtime/device/precision/processor.h"
#include "runtime/models/model.h"
#include "runtime/parallel/lap.h"
#include "runtime/train/setup/precision.h"
#include "runtime/train/setup/prepare_machine.h"
#include "runtime/train/setup/run_parts.h"

namespace tutti::train {
namespace {

constexpr int64_t kClassesOfCifar = 10, kBatchOfTheExample = 64, kSideOfCifar = 32;
// First come steps that make room and tune, for kSecondsBefore or at most kMostBefore of them; then
// those that are measured, for kSeconds and at least one.
constexpr double kSecondsBefore = 1, kSeconds = 1;
constexpr int kMostBefore = 3;
constexpr double kMostSeconds = 4;  // of each, on a machine that gives them little of its time
constexpr absl::Duration kPatience = absl::Seconds(60);

base::Deadline Patiently() { return base::Deadline::After(kPatience); }

double ProcessorSeconds() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Seconds by the clock, and those that the step takes of an idle machine. On a CPU these are the
// processor time of the calling thread, which takes part in all that the others compute. Where it
// spins while it waits for one of them that has no processor, and does not sleep
// (OMP_WAIT_POLICY=passive), that counts as well.
struct Lap {
  double clock = 0, alone = 0;
};

class Laps {
 public:
  explicit Laps(torch::Device device) : on_cpu_(device.is_cpu()) {}

  Lap Next() {
    const double before = std::exchange(processor_, ProcessorSeconds());
    const double clock = timer_.Lap();
    return {clock, on_cpu_ ? processor_ - before : clock};
  }

 private:
  const bool on_cpu_;
  parallel::LapTimer timer_;
  double processor_ = ProcessorSeconds();
};

double ImagesPerSecondOf(std::vector<double> steps) {
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  return static_cast<double>(kBatchOfTheExample) / *middle;
}

// By the median step.
absl::Status MeasureSteps(const Recipe& recipe, torch::Device device, MachineReport& report) {
  TUTTI_ASSIGN_OR_RETURN(const models::Model model,
                         models::MakeModel({recipe.model, kClassesOfCifar}, 1));
  TUTTI_ASSIGN_OR_RETURN(auto group, comm::JoinGroup({}));
  TUTTI_ASSIGN_OR_RETURN(const auto strategy,
                         MakeStrategy(recipe, model, std::move(group), device));
  TUTTI_RETURN_IF_ERROR(strategy->Synchronize(Patiently()));
  const auto type = recipe.precision == "bf16" ? torch::kBFloat16 : torch::kFloat32;
  const torch::Tensor images =
      torch::ones({kBatchOfTheExample, 3, kSideOfCifar, kSideOfCifar}, type)
          .contiguous(torch::MemoryFormat::ChannelsLast);
  const torch::Tensor labels = torch::arange(kBatchOfTheExample, torch::kInt64) % kClassesOfCifar;
  Laps laps(device);
  const auto step_into = [&](Lap& spent) -> absl::StatusOr<Lap> {
    TUTTI_RETURN_IF_ERROR(
        strategy->Step({{images}, labels}, /*learning_rate=*/1e-4, Patiently()).status());
    const Lap lap = laps.Next();
    spent.clock += lap.clock;
    spent.alone += lap.alone;
    return lap;
  };
  const auto goes_on = [](const Lap& spent, double seconds) {
    return spent.alone < seconds && spent.clock < kMostSeconds;
  };
  Lap before, spent;
  for (int step = 0; step < kMostBefore && goes_on(before, kSecondsBefore); ++step) {
    TUTTI_RETURN_IF_ERROR(step_into(before).status());
  }
  std::vector<double> clock, alone;
  while (goes_on(spent, kSeconds)) {
    TUTTI_ASSIGN_OR_RETURN(const Lap lap, step_into(spent));
    clock.push_back(lap.clock);
    alone.push_back(lap.alone);
  }
  TUTTI_RETURN_IF_ERROR(strategy->Settle(Patiently()).status());
  report.images_per_second = ImagesPerSecondOf(std::move(clock));
  report.images_per_second_alone = ImagesPerSecondOf(std::move(alone));
  return absl::OkStatus();
}

nlohmann::json GpuJson(const std::optional<device::Gpu>& gpu) {
  if (!gpu) return nullptr;
  return {{"name", gpu->name},
          {"compute_capability", absl::StrCat(gpu->major, ".", gpu->minor)},
          {"memory", gpu->memory}};
}

absl::StatusOr<MachineReport> Described() {
  MachineReport report;
  report.processor = device::ThisProcessor().model;
  report.instructions = base::DescribeInstructionSet();
  TUTTI_ASSIGN_OR_RETURN(const torch::Device device, device::Open("auto"));
  PrepareMachine(/*threads=*/0, device.is_cuda());
  report.threads = at::get_num_threads();
  if (device.is_cuda()) {
    report.device = "cuda";
    report.gpu = device::GpuOf(device.index());
  } else {
    report.no_gpu = std::string(device::Open("cuda").status().message());
  }
  report.memory_speed = device::MeasureMemorySpeed();
  report.precision = device::DetectPrecision("auto", device);
  Recipe recipe;
  recipe.precision = report.precision.precision;
  TUTTI_RETURN_IF_ERROR(MeasureSteps(recipe, device, report));
  return report;
}

}  // namespace

absl::StatusOr<MachineReport> DescribeMachine() {
  try {
    return Described();
  } catch (const std::exception& error) {  // libtorch's, and memory that there is not
    return absl::InternalError(error.what());
  }
}

std::string AsJson(const MachineReport& report) {
  const nlohmann::ordered_json json = {{"processor", report.processor},
                                       {"instructions", report.instructions},
                                       {"threads", report.threads},
                                       {"memory_speed", report.memory_speed},
                                       {"precision", report.precision.precision},
                                       {"why", report.precision.why},
                                       {"device", report.device},
                                       {"images_per_second", report.images_per_second},
                                       {"images_per_second_alone", report.images_per_second_alone},
                                       {"gpu", GpuJson(report.gpu)},
                                       {"no_gpu", report.no_gpu}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace tutti::train
