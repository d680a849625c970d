// A contender of compare_gpu: training steps of ResNet-50 on a GPU by tutti's own parts, with
// synthetic images that are sent to the GPU at every step. A line with a number on standard input
// asks for as many steps; the answer is the seconds that they took.
//
//   gpu_step BATCH [MODEL=resnet50]
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "base/status.h"
#include "runtime/comm/group_options.h"
#include "runtime/device/device.h"
#include "runtime/parallel/lap.h"
#include "runtime/train/machine.h"
#include "runtime/train/parts.h"

namespace tutti {
namespace {

absl::Status Serve(const std::string& model_name, int64_t batch) {
  TUTTI_ASSIGN_OR_RETURN(const torch::Device device, device::Open("cuda"));
  train::PrepareMachine(0, /*gpu=*/true);
  if (device::Kernels() == nullptr) std::fputs("without libtutti_cuda.so\n", stderr);
  TUTTI_ASSIGN_OR_RETURN(auto alone, comm::JoinGroup(comm::GroupOptions()));
  TUTTI_ASSIGN_OR_RETURN(const auto model, models::MakeModel({model_name, 1000}, 1));
  train::Recipe recipe;
  recipe.precision = "bf16";
  TUTTI_ASSIGN_OR_RETURN(const auto strategy,
                         train::MakeStrategy(recipe, model, std::move(alone), device));
  const auto optimizer = train::MakeOptimizer(recipe, *strategy);
  const auto soon = [] { return base::Deadline::After(absl::Seconds(100)); };
  TUTTI_RETURN_IF_ERROR(strategy->Synchronize(soon()));
  const auto size = models::InputSize(model_name);
  const auto images = torch::randn({batch, 3, size, size})
                          .to(torch::kBFloat16)
                          .contiguous(torch::MemoryFormat::ChannelsLast)
                          .pin_memory();
  const auto labels = torch::randint(1000, {batch}, torch::kInt64).pin_memory();
  std::puts("ready");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    parallel::LapTimer timer;
    for (int64_t step = std::atoll(line.c_str()); step > 0; --step) {
      TUTTI_RETURN_IF_ERROR(strategy->Step(images, labels, soon()).status());
      optimizer->Step(0.01);
    }
    TUTTI_RETURN_IF_ERROR(strategy->Settle(soon()).status());
    torch::cuda::synchronize();
    std::printf("%.6f\n", timer.Lap());
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  const auto status = tutti::Serve(argc > 2 ? argv[2] : "resnet50", argc > 1 ? atoll(argv[1]) : 64);
  if (status.ok()) return 0;
  std::fprintf(stderr, "gpu_step: %s\n", status.ToString().c_str());
  return 1;
}
