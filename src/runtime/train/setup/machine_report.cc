#include "runtime/train/setup/machine_report.h"

#include <ATen/Parallel.h>
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
#include "runtime/train/optimizer/optimizers.h"
#include "runtime/train/setup/precision.h"
#include "runtime/train/setup/prepare_machine.h"
#include "runtime/train/setup/run_parts.h"

namespace tutti::train {
namespace {

constexpr int64_t kClassesOfCifar = 10, kBatchOfTheExample = 64, kSideOfCifar = 32;
// Of steps: those that make room and tune, at most three, and those that are measured, at least
// one.
constexpr double kSecondsBefore = 1, kSeconds = 1;
constexpr int kMostBefore = 3;
constexpr absl::Duration kPatience = absl::Seconds(60);

base::Deadline Patiently() { return base::Deadline::After(kPatience); }

// Of the median step.
absl::StatusOr<double> ImagesPerSecond(const Recipe& recipe, torch::Device device) {
  TUTTI_ASSIGN_OR_RETURN(const models::Model model,
                         models::MakeModel({recipe.model, kClassesOfCifar}, 1));
  TUTTI_ASSIGN_OR_RETURN(auto alone, comm::JoinGroup({}));
  TUTTI_ASSIGN_OR_RETURN(const auto strategy,
                         MakeStrategy(recipe, model, std::move(alone), device));
  const auto optimizer = MakeOptimizer(recipe, strategy->buckets());
  TUTTI_RETURN_IF_ERROR(strategy->Synchronize(Patiently()));
  const auto type = recipe.precision == "bf16" ? torch::kBFloat16 : torch::kFloat32;
  const torch::Tensor images =
      torch::ones({kBatchOfTheExample, 3, kSideOfCifar, kSideOfCifar}, type)
          .contiguous(torch::MemoryFormat::ChannelsLast);
  const torch::Tensor labels = torch::arange(kBatchOfTheExample, torch::kInt64) % kClassesOfCifar;
  parallel::LapTimer timer;
  const auto one_step = [&]() -> absl::StatusOr<double> {
    TUTTI_RETURN_IF_ERROR(strategy->Step(images, labels, Patiently()).status());
    optimizer->Step(/*learning_rate=*/1e-4);
    return timer.Lap();
  };
  double before = 0, spent = 0;
  for (int step = 0; step < kMostBefore && before < kSecondsBefore; ++step) {
    TUTTI_ASSIGN_OR_RETURN(const double lap, one_step());
    before += lap;
  }
  std::vector<double> seconds;
  while (spent < kSeconds) {
    TUTTI_ASSIGN_OR_RETURN(const double lap, one_step());
    seconds.push_back(lap);
    spent += lap;
  }
  TUTTI_RETURN_IF_ERROR(strategy->Settle(Patiently()).status());
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return static_cast<double>(kBatchOfTheExample) / *middle;
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
  TUTTI_ASSIGN_OR_RETURN(report.images_per_second, ImagesPerSecond(recipe, device));
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
                                       {"gpu", GpuJson(report.gpu)},
                                       {"no_gpu", report.no_gpu}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace tutti::train
