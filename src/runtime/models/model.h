// Networks by name. Parameter names and initialisation are torchvision's where it has the network.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::models {

struct ModelSpec {
  std::string name;  // "resnet20", "resnet32", "resnet56" (CIFAR), "resnet18", "resnet50"
  int64_t classes = 10;
};

// [N, 3, H, W] -> logits [N, classes].
class ModelImpl : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(torch::Tensor images) = 0;
};
using Model = std::shared_ptr<ModelImpl>;

// fp32, on the CPU, in train mode, initialised from `seed`. NotFound lists the names there are.
absl::StatusOr<Model> MakeModel(const ModelSpec& spec, uint64_t seed);
std::vector<std::string> ModelNames();
// Height and width that the network is meant for: 32 or 224.
int64_t InputSize(absl::string_view name);

// Every batch-norm of the model takes its statistics through this from now on (parallel/ implements
// it by all-reduce): sums [2 * channels + 1] -> the sums over all ranks, in place.
using SumOverRanks = std::function<absl::Status(torch::Tensor& sums)>;
void UseSynchronizedBatchNorm(const Model& model, SumOverRanks sum);

}  // namespace tutti::models
