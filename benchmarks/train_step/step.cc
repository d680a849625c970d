// A contender of compare: training steps by tutti's own parts, with synthetic images (which are
// sent to a GPU at every step), or with images by the loader where the recipe names data. A line
// with a number on standard input asks for as many steps; the answer is the seconds that they took.
//
//   train_step DEVICE BATCH [THREADS=0] [FIELD=VALUE...] [profile]
//
// Fields are a recipe's, as model=resnet50 (the default), data=FOLDER, workers=8, optimizer=lamb;
// ema counts with data alone.
// `profile` prints where the time of ten steps goes instead.
#include <torch/cuda.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "benchmarks/train_step/profile.h"
#include "runtime/comm/group_options.h"
#include "runtime/device/device.h"
#include "runtime/parallel/lap.h"
#include "runtime/train/setup/prepare_machine.h"
#include "runtime/train/setup/run_parts.h"

namespace tutti {
namespace {

constexpr double kLearningRate = 0.01;

base::Deadline Soon() { return base::Deadline::After(absl::Seconds(100)); }

// So many steps.
using Training = std::function<absl::Status(int64_t)>;
// One.
using Step = std::function<absl::Status()>;

Training Finished(const Step& step, parallel::Strategy& strategy, torch::Device device) {
  return [=, &strategy](int64_t steps) -> absl::Status {
    for (; steps > 0; --steps) TUTTI_RETURN_IF_ERROR(step());
    TUTTI_RETURN_IF_ERROR(strategy.Settle(Soon()).status());
    if (device.is_cuda()) torch::cuda::synchronize();
    return absl::OkStatus();
  };
}

absl::StatusOr<Training> OnSyntheticImages(const train::Recipe& recipe, torch::Device device,
                                           train::Parts& parts) {
  TUTTI_ASSIGN_OR_RETURN(auto alone, comm::JoinGroup(comm::GroupOptions()));
  const auto size = models::InputSize(recipe.model);
  const int64_t classes = size == 32 ? 10 : 1000;  // as peer_networks.py
  TUTTI_ASSIGN_OR_RETURN(const models::Model model, models::MakeModel({recipe.model, classes}, 1));
  TUTTI_ASSIGN_OR_RETURN(parts.strategy,
                         train::MakeStrategy(recipe, model, std::move(alone), device));
  auto images = torch::randn({recipe.batch, 3, size, size})
                    .to(recipe.precision == "bf16" ? torch::kBFloat16 : torch::kFloat32)
                    .contiguous(torch::MemoryFormat::ChannelsLast);
  auto labels = torch::randint(classes, {recipe.batch}, torch::kInt64);
  if (device.is_cuda()) {
    images = images.pin_memory();
    labels = labels.pin_memory();
  }
  const auto step = [&parts, images, labels]() -> absl::Status {
    return parts.strategy->Step({{images}, labels}, kLearningRate, Soon()).status();
  };
  return Finished(step, *parts.strategy, device);
}

absl::StatusOr<Training> OnImages(const train::Recipe& recipe, torch::Device device,
                                  train::Parts& parts) {
  TUTTI_ASSIGN_OR_RETURN(auto alone, comm::JoinGroup(comm::GroupOptions()));
  TUTTI_ASSIGN_OR_RETURN(parts, train::MakeParts(recipe, std::move(alone), device));
  const auto step = [&parts]() -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const parallel::Batch batch, parts.train->Next(Soon()));
    return parts.strategy->Step(batch, kLearningRate, Soon()).status();
  };
  return Finished(step, *parts.strategy, device);
}

template <class Profile>
absl::Status Profiled(const Training& train) {
  constexpr int64_t kSteps = 10;
  Profile profile;
  TUTTI_RETURN_IF_ERROR(train(kSteps));
  profile.Print(kSteps);
  return absl::OkStatus();
}

absl::Status Serve(const train::Recipe& recipe, bool profiled) {
  TUTTI_ASSIGN_OR_RETURN(const torch::Device device, device::Open(recipe.device));
  train::PrepareMachine(recipe.threads, device.is_cuda());
  if (device.is_cuda() && device::Kernels() == nullptr) {
    std::fputs("without libtutti_cuda.so\n", stderr);
  }
  train::Parts parts;
  TUTTI_ASSIGN_OR_RETURN(const Training train, recipe.data.empty()
                                                   ? OnSyntheticImages(recipe, device, parts)
                                                   : OnImages(recipe, device, parts));
  TUTTI_RETURN_IF_ERROR(parts.strategy->Synchronize(Soon()));
  if (profiled) {
    TUTTI_RETURN_IF_ERROR(train(3));
    return device.is_cuda() ? Profiled<KernelProfile>(train) : Profiled<Profile>(train);
  }
  TUTTI_RETURN_IF_ERROR(train(3));  // which tune convolutions and record the step on a GPU
  std::puts("ready");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    parallel::LapTimer timer;
    TUTTI_RETURN_IF_ERROR(train(std::atoll(line.c_str())));
    std::printf("%.6f\n", timer.Lap());
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

// "model=vgg16"
absl::Status Set(train::Recipe& recipe, absl::string_view word) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(word, absl::MaxSplits('=', 1));
  for (const train::Field& field : train::FieldsOf(recipe)) {
    if (field.name == parts.first) {
      return base::Annotate(train::SetField(field, parts.second), parts.first);
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("a recipe has no field \"", parts.first, "\""));
}

absl::Status Main(int argc, char** argv) {
  train::Recipe recipe;
  recipe.model = "resnet50";
  recipe.precision = "bf16";
  recipe.device = argv[1];
  if (!absl::SimpleAtoi(argv[2], &recipe.batch)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", argv[2], "\" is no batch size"));
  }
  bool profiled = false;
  for (int i = 3; i < argc; ++i) {
    const absl::string_view word = argv[i];
    if (word == "profile") {
      profiled = true;
    } else if (i > 3 || !absl::SimpleAtoi(word, &recipe.threads)) {
      TUTTI_RETURN_IF_ERROR(Set(recipe, word));
    }
  }
  return Serve(recipe, profiled);
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("train_step DEVICE BATCH [THREADS=0] [FIELD=VALUE...] [profile]\n", stderr);
    return 2;
  }
  const absl::Status status = tutti::Main(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "train_step: %s\n", status.ToString().c_str());
  return 1;
}
