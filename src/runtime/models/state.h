// Collects a module's parameters and buffers by name, which are saved, loaded and compared.
#pragma once

#include <torch/nn/module.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::models {

// Returns the parameters and buffers ("layer1.0.bn1.running_mean"), detached, sharing the module's
// memory.
std::map<std::string, torch::Tensor> StateOf(const torch::nn::Module& module);

// Returns InvalidArgument as LoadState does where `own`, of which names and shapes count, is what
// the module holds.
absl::Status CheckState(const std::map<std::string, torch::Tensor>& state,
                        const std::map<std::string, torch::Tensor>& own);

// Copies `state` into the module, converting types. InvalidArgument, with what is missing, what is
// too much and which shapes differ, when it is another network's; then nothing has been changed.
absl::Status LoadState(const std::map<std::string, torch::Tensor>& state,
                       torch::nn::Module& module);

// To begin from: copies what `state` has for the module, converting types, and returns the names of
// the module's tensors that it has not, or in another shape (a head for other classes), which stay
// as they are. InvalidArgument names what the module has no place for, or that nothing fits; then
// nothing has been changed.
absl::StatusOr<std::vector<std::string>> LoadFitting(
    const std::map<std::string, torch::Tensor>& state, torch::nn::Module& module);

// Returns whether a parameter is a class token or an embedding of positions, by its name in
// torchvision or timm ("encoder.pos_embedding"): what stands for an activation or is added to one.
bool IsTokenOrPosition(absl::string_view parameter);

}  // namespace tutti::models
