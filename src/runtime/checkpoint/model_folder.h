// Writes and reads a trained model as a folder: weights, architecture, classes and how an image
// becomes its input (docs/formats/checkpoint.md). Functions are thread-safe.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/safetensors.h"

namespace tutti::checkpoint {

struct ModelInput {
  int64_t height = 32, width = 32;  // pixels
  int64_t resize = 0;    // > 0: shorter side to this first, then the centre of height x width
  bool stretch = false;  // all of the image to height x width instead
  std::array<double, 3> mean = {0, 0, 0};  // of pixels in 0..1, RGB
  std::array<double, 3> stddev = {1, 1, 1};
};

struct ModelFolder {
  std::string architecture;  // models::ModelSpec::name; "script:model.pt": is in the folder
  std::string task = "classification";  // tasks::Task::name
  std::vector<std::string> classes;     // by label
  ModelInput input;
  std::string precision;    // in which it was trained: "fp32", "bf16"; "" in older folders
  TensorMap tensors;        // parameters and buffers
  std::string torchscript;  // bytes of model.pt; empty: there is none. ReadModelFolder leaves it so
};

// Writes it atomically and durably, as a checkpoint. Replaces a model folder of the same name. With
// `tensors` these are the model's, and not model.tensors.
absl::Status WriteModelFolder(const std::filesystem::path& path, const ModelFolder& model);
absl::Status WriteModelFolder(const std::filesystem::path& path, const ModelFolder& model,
                              const TensorSources& tensors);

// Reads a folder; every byte is verified. Errors name the file and the key: NotFound when the
// folder has no manifest; DataLoss when a file is damaged; InvalidArgument when model.json does not
// say what it must.
absl::StatusOr<ModelFolder> ReadModelFolder(const std::filesystem::path& path);

}  // namespace tutti::checkpoint
