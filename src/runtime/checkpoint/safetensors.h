// Reads and writes tensors by name in a safetensors file. Functions are thread-safe.
#pragma once

#include <torch/types.h>

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/checkpoint/folder_writer.h"

namespace tutti::checkpoint {

using TensorMap = std::map<std::string, torch::Tensor>;

// Takes the file's bytes over: the tensors are views of them and keep them alive together.
// They are contiguous and on the CPU. DataLoss, with the tensor's name, when the bytes are no
// safetensors file.
absl::StatusOr<TensorMap> ParseSafetensors(std::string bytes);

// Reads the whole file; errors name it.
absl::StatusOr<TensorMap> ReadSafetensors(const std::filesystem::path& path);

// Adds `tensors` (any strides and device; fp64, fp32, fp16, bf16, int64 to int8, uint8, bool) to
// the folder as file `name`. InvalidArgument names a tensor of another type.
absl::Status AddTensors(FolderWriter& folder, absl::string_view name, const TensorMap& tensors);

}  // namespace tutti::checkpoint
