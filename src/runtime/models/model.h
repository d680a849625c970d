// Makes networks by their names. Parameter names, shapes and initialisation are torchvision's where
// it has the network, so that state dicts go either way. Functions are thread-safe; a model is
// thread-compatible.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/models/layer.h"

namespace tutti::models {

struct ModelSpec {
  std::string name;  // one of ModelNames(), or "script:FILE" (script_model.h)
  int64_t classes = 10;
};

class FirstDraws;  // layers/initialisation.h

// What a network says of an image; tasks/ has what belongs to each.
enum class Purpose { kClassification, kSegmentation, kDetection };

// [N, 3, H, W] -> logits: [N, classes] of an image, [N, classes, H, W] of its pixels, or what
// single_shot_detector.h says.
//
// Takes images in any memory format (channels-last is the fast one) and in fp32, fp64 or bf16, if
// its weights are of that type: to(torch::kBFloat16) converts all but the norms, which stay in fp32
// whatever the type around them (see batch_norm.h).
class ModelImpl : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(torch::Tensor images) = 0;
  // Returns what training looks at, of all that the model takes, each [N, ...]: forward()'s output
  // and, in train mode, auxiliary ones.
  virtual std::vector<torch::Tensor> Outputs(const std::vector<torch::Tensor>& inputs) {
    return {forward(inputs.at(0))};
  }
  // Returns the same network as layers one after the other, which share its parameters: forward()
  // is the last one's main output. Empty: it cannot be cut.
  virtual std::vector<Layer> Layers() { return {}; }
  // Draws every parameter anew.
  virtual void Initialise(const FirstDraws& draws) {}
};
using Model = std::shared_ptr<ModelImpl>;

// Makes it in fp32, on the CPU, in train mode, or with any values without a seed, for who gives it
// others; a script as its file has it, with as many classes. With one, what a layer begins with is
// a function of the seed and of the layer's name alone. NotFound lists the names there are;
// InvalidArgument: fewer than one class.
absl::StatusOr<Model> MakeModel(const ModelSpec& spec, std::optional<uint64_t> seed);
// Makes a model of some neighbouring layers of another one, whose parameters and buffers it takes
// over under the names that they have there; it keeps nothing else of that model alive. Its
// forward() takes and returns what goes from layer to layer: [N, ...].
Model MakeStage(std::vector<Layer> layers);

// Lists "resnet20", "resnet32", ... (CIFAR), "resnet18", "resnet50", ... (ImageNet).
std::vector<std::string> ModelNames();
// Returns the height and width that the network is meant for: 32, 224, ...; 0 for an unknown name.
int64_t InputSize(absl::string_view name);
// Returns whether the network takes images of that size alone.
bool TakesOneSize(absl::string_view name);
// A script is for classification.
Purpose PurposeOf(absl::string_view name);

// Replaces `sums`, a contiguous fp64 vector on the model's device, by its sum over all ranks.
// Called once a batch-norm in forward (2 * channels + 1 elements: sums, sums of squares, count) and
// once in backward (2 * channels), in the same order on every rank; from the thread that calls
// forward() and backward().
using SumOverRanks = std::function<absl::Status(torch::Tensor& sums)>;

// Lets every batch-norm of the model take its statistics through `sum` from now on, so that n ranks
// normalise as one process would with the whole mini-batch. An error of `sum` leaves forward() or
// backward() as SumFailed.
void UseSynchronizedBatchNorm(const Model& model, SumOverRanks sum);

// Thrown through libtorch, which knows exceptions only; the caller takes the status out again.
struct SumFailed : std::runtime_error {
  explicit SumFailed(absl::Status why) : std::runtime_error(why.ToString()), status(why) {}
  absl::Status status;
};

}  // namespace tutti::models
