// Reads and writes tensors by name in a safetensors file. Functions are thread-safe.
#pragma once

#include <torch/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

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

// A tensor to be written, which may lie elsewhere, as on another rank, until its turn comes.
struct TensorSource {
  torch::Dtype type;
  std::vector<int64_t> shape;
  // Returns the tensor: of any strides and device, and of the type and shape that were said.
  std::function<absl::StatusOr<torch::Tensor>()> get;
};

using TensorSources = std::map<std::string, TensorSource>;

// Returns sources that give these very tensors, whose memory they share.
TensorSources SourcesOf(const TensorMap& tensors);

// Returns the names in the order of a file: largest elements first, then by name. The order of a
// part of the tensors, as of those that a rank has, is that of all with the others left out.
std::vector<std::string> FileOrder(const TensorSources& tensors);

// Adds tensors (fp64, fp32, fp16, bf16, int64 to int8, uint8, bool) to the folder as file `name`.
// It calls each `get` once, in FileOrder, after it has let go of the tensor before: no more than
// one is held. InvalidArgument names a tensor of another type, before any `get`. An error of a
// `get`, after which no other is called, is that of AddTensors, with the tensor's name; Internal
// names a tensor that came with another type or shape than was said.
absl::Status AddTensors(FolderWriter& folder, absl::string_view name, const TensorSources& tensors);

}  // namespace tutti::checkpoint
