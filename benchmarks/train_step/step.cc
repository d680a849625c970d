// A contender of compare: training steps by tutti's own parts, with synthetic images (which are
// sent to a GPU at every step). A line with a number on standard input asks for as many steps; the
// answer is the seconds that they took, by the clock and of processors.
//
//   train_step DEVICE BATCH [THREADS=0] [MODEL=resnet50] [profile]
//
// `profile` prints where the time of ten steps goes instead.
#include <torch/cuda.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>

#include "base/status.h"
#include "benchmarks/train_step/profile.h"
#include "runtime/comm/group_options.h"
#include "runtime/device/device.h"
#include "runtime/parallel/lap.h"
#include "runtime/train/machine.h"
#include "runtime/train/parts.h"

namespace tutti {
namespace {

struct Wish {
  std::string device, model;
  int64_t batch, threads;
  bool profile;
};

double ProcessorSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

absl::Status Serve(const Wish& wish) {
  TUTTI_ASSIGN_OR_RETURN(const torch::Device device, device::Open(wish.device));
  train::PrepareMachine(wish.threads, device.is_cuda());
  if (device.is_cuda() && device::Kernels() == nullptr) {
    std::fputs("without libtutti_cuda.so\n", stderr);
  }
  TUTTI_ASSIGN_OR_RETURN(auto alone, comm::JoinGroup(comm::GroupOptions()));
  TUTTI_ASSIGN_OR_RETURN(const auto model, models::MakeModel({wish.model, 1000}, 1));
  train::Recipe recipe;
  recipe.precision = "bf16";
  TUTTI_ASSIGN_OR_RETURN(const auto strategy,
                         train::MakeStrategy(recipe, model, std::move(alone), device));
  const auto optimizer = train::MakeOptimizer(recipe, *strategy);
  const auto soon = [] { return base::Deadline::After(absl::Seconds(100)); };
  TUTTI_RETURN_IF_ERROR(strategy->Synchronize(soon()));
  const auto size = models::InputSize(wish.model);
  auto images = torch::randn({wish.batch, 3, size, size})
                    .to(torch::kBFloat16)
                    .contiguous(torch::MemoryFormat::ChannelsLast);
  auto labels = torch::randint(1000, {wish.batch}, torch::kInt64);
  if (device.is_cuda()) {
    images = images.pin_memory();
    labels = labels.pin_memory();
  }
  const auto train = [&](int64_t steps) -> absl::Status {
    for (; steps > 0; --steps) {
      TUTTI_RETURN_IF_ERROR(strategy->Step(images, labels, soon()).status());
      optimizer->Step(0.01);
    }
    TUTTI_RETURN_IF_ERROR(strategy->Settle(soon()).status());
    if (device.is_cuda()) torch::cuda::synchronize();
    return absl::OkStatus();
  };
  if (wish.profile) {
    TUTTI_RETURN_IF_ERROR(train(2));
    const Profile profile;
    TUTTI_RETURN_IF_ERROR(train(10));
    profile.Print(10);
    return absl::OkStatus();
  }
  std::puts("ready");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const double processors = ProcessorSeconds();
    parallel::LapTimer timer;
    TUTTI_RETURN_IF_ERROR(train(std::atoll(line.c_str())));
    std::printf("%.6f %.6f\n", timer.Lap(), ProcessorSeconds() - processors);
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("train_step DEVICE BATCH [THREADS=0] [MODEL=resnet50] [profile]\n", stderr);
    return 2;
  }
  const auto status = tutti::Serve({.device = argv[1],
                                    .model = argc > 4 ? argv[4] : "resnet50",
                                    .batch = std::atoll(argv[2]),
                                    .threads = argc > 3 ? std::atoll(argv[3]) : 0,
                                    .profile = argc > 5});
  if (status.ok()) return 0;
  std::fprintf(stderr, "train_step: %s\n", status.ToString().c_str());
  return 1;
}
