// Trains a network of its own, alone or as one rank of many: train DATA CHECKPOINTS STEPS
// Started again, it goes on from its newest checkpoint.
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>

#include "base/status.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/comm/communicator.h"
#include "runtime/data/loader.h"
#include "runtime/parallel/data_parallel.h"
#include "runtime/train/optimizer/schedule.h"
#include "runtime/train/optimizer/sgd.h"
#include "runtime/train/setup/batch_tensors.h"
#include "runtime/train/setup/prepare_machine.h"

using namespace tutti;

// Any network: [N, 3, 32, 32] -> logits [N, classes].
struct SmallNet : models::ModelImpl {
  explicit SmallNet(int64_t classes)
      : body(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 32, 3).stride(2).padding(1)),
             torch::nn::BatchNorm2d(32), torch::nn::ReLU(),
             torch::nn::Conv2d(torch::nn::Conv2dOptions(32, 64, 3).stride(2).padding(1)),
             torch::nn::ReLU(), torch::nn::AdaptiveAvgPool2d(4), torch::nn::Flatten(),
             torch::nn::Linear(64 * 16, classes)) {
    register_module("body", body);
  }
  torch::Tensor forward(torch::Tensor images) override { return body->forward(images); }
  torch::nn::Sequential body;
};

absl::Status Train(const std::string& folder, const std::string& checkpoints, int64_t steps) {
  const auto soon = [] { return base::Deadline::After(absl::Minutes(1)); };
  train::PrepareMachine(/*threads=*/0, /*gpu=*/false);  // as the trainer does: speed, same bits
  // Who the other ranks are stands in RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
  TUTTI_ASSIGN_OR_RETURN(const auto group, comm::GroupOptionsFromEnvironment());
  TUTTI_ASSIGN_OR_RETURN(auto communicator, comm::JoinGroup(group));

  // Each rank takes its part of every batch of 64 images.
  TUTTI_ASSIGN_OR_RETURN(const auto images, data::OpenDataset(folder, "train"));
  data::LoaderOptions options;
  options.global_batch = 64;
  options.rank = group.rank;
  options.world_size = group.size;
  options.augmentation.pad_crop = 4;
  options.augmentation.flip = tutti::data::Flip::kByChance;
  for (float& deviation : options.augmentation.stddev) deviation = 0.25f;
  TUTTI_ASSIGN_OR_RETURN(const auto loader, data::MakeLoader(images, options));

  torch::manual_seed(1);
  const auto model = std::make_shared<SmallNet>(static_cast<int64_t>(images->classes().size()));
  const auto sgd = [](const parallel::Buckets& buckets, const models::Model&) {
    return std::make_unique<train::Sgd>(
        buckets, train::SgdCoefficients{.momentum = 0.9, .weight_decay = 1e-4});
  };
  TUTTI_ASSIGN_OR_RETURN(const auto ranks, parallel::DataParallel::Create(
                                               model, std::move(communicator), {.optimizer = sgd}));
  const train::Schedule schedule{.peak = 0.05, .warmup_steps = 10, .total_steps = steps};

  checkpoint::CheckpointFolder kept(checkpoints, /*keep=*/2);
  torch::Tensor done = torch::zeros({1}, torch::kInt64);
  if (auto newest = kept.LoadNewest(); group.rank == 0 && !absl::IsNotFound(newest.status())) {
    TUTTI_RETURN_IF_ERROR(newest.status());  // none that is whole, but damaged ones
    done.fill_(newest->checkpoint.step);
    torch::NoGradGuard no_grad;
    for (auto& [name, tensor] : parallel::ByName(ranks->state())) {
      tensor.copy_(newest->checkpoint.model.at(name));
    }
  }
  TUTTI_RETURN_IF_ERROR(ranks->Broadcast(done, soon()));  // rank 0's state to all
  TUTTI_RETURN_IF_ERROR(ranks->Synchronize(soon()));

  const int64_t first = done.item<int64_t>(), epoch = loader->steps_per_epoch();
  loader->Seek(first / epoch, first % epoch);
  for (int64_t step = first; step < steps; ++step) {
    TUTTI_ASSIGN_OR_RETURN(const auto batch, loader->Next(soon()));
    TUTTI_ASSIGN_OR_RETURN(
        const auto result,
        ranks->Step({{train::ImagesOf(batch, options.augmentation, /*bf16=*/false)},
                     train::LabelsOf(batch)},
                    schedule.LearningRate(step), soon()));
    if (group.rank != 0 || ((step + 1) % 20 != 0 && step + 1 != steps)) continue;
    std::printf("step %ld loss %.3f\n", static_cast<long>(step + 1), result.loss);
    const checkpoint::Checkpoint now{step + 1, parallel::ByName(ranks->state()), {}, {}};
    TUTTI_RETURN_IF_ERROR(kept.Save(SourcesOf(now)).status());
  }
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  if (argc != 4) return std::fputs("usage: train DATA CHECKPOINTS STEPS\n", stderr), 2;
  const absl::Status status = Train(argv[1], argv[2], std::atoll(argv[3]));
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
