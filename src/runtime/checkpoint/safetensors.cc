#include "runtime/checkpoint/safetensors.h"

#include <c10/util/accumulate.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"
#include "runtime/checkpoint/safetensors_header.h"

namespace tutti::checkpoint {
namespace {

constexpr std::pair<TensorType, torch::Dtype> kTorchTypes[] = {
    {TensorType::kBool, torch::kBool},       {TensorType::kUint8, torch::kUInt8},
    {TensorType::kInt8, torch::kInt8},       {TensorType::kInt16, torch::kInt16},
    {TensorType::kInt32, torch::kInt32},     {TensorType::kInt64, torch::kInt64},
    {TensorType::kFloat16, torch::kFloat16}, {TensorType::kBFloat16, torch::kBFloat16},
    {TensorType::kFloat32, torch::kFloat32}, {TensorType::kFloat64, torch::kFloat64},
};

torch::Dtype ToTorch(TensorType type) {
  for (const auto& [ours, torchs] : kTorchTypes) {
    if (ours == type) return torchs;
  }
  std::abort();  // the table has every TensorType
}

std::optional<TensorType> FromTorch(torch::Dtype type) {
  for (const auto& [ours, torchs] : kTorchTypes) {
    if (torchs == type) return ours;
  }
  return std::nullopt;
}

// What goes into the file, in its order: largest elements first, so that each is aligned.
absl::StatusOr<std::vector<TensorRecord>> LayOut(const TensorSources& tensors) {
  std::vector<TensorRecord> records;
  uint64_t at = 0;
  for (const std::string& name : FileOrder(tensors)) {
    const TensorSource& source = tensors.at(name);
    const auto type = FromTorch(source.type);
    if (!type) {
      return absl::InvalidArgumentError(absl::StrCat("tensor \"", name, "\" is of type ",
                                                     c10::toString(source.type),
                                                     ", which safetensors files do not have"));
    }
    const int64_t bytes = c10::multiply_integers(source.shape) * SizeOf(*type);
    records.push_back({name, *type, source.shape, at, at + static_cast<uint64_t>(bytes)});
    at = records.back().end;
  }
  return records;
}

std::string TypeAndShape(torch::Dtype type, torch::IntArrayRef shape) {
  return absl::StrCat(c10::toString(type), " [", absl::StrJoin(shape, ", "), "]");
}

// Returns the source's tensor, contiguous and on the CPU, if it is what was said of it.
absl::StatusOr<torch::Tensor> Fetch(const std::string& name, const TensorSource& source) {
  const auto tensor = source.get();
  if (!tensor.ok()) {
    return base::Annotate(tensor.status(), absl::StrCat("tensor \"", name, "\""));
  }
  const std::string said = TypeAndShape(source.type, source.shape);
  const std::string came = TypeAndShape(tensor->scalar_type(), tensor->sizes());
  if (came != said) {
    return absl::InternalError(
        absl::StrCat("tensor \"", name, "\" was to be ", said, " and is ", came));
  }
  return tensor->detach().to(torch::kCPU).contiguous();
}

}  // namespace

absl::StatusOr<TensorMap> ParseSafetensors(std::string bytes) {
  const auto file = std::make_shared<std::string>(std::move(bytes));
  TUTTI_ASSIGN_OR_RETURN(const SafetensorsHeader header, ParseSafetensorsHeader(*file));
  TensorMap tensors;
  for (const TensorRecord& record : header.tensors) {
    char* data = file->data() + header.data_begin + record.begin;
    const torch::Dtype type = ToTorch(record.type);
    torch::Tensor tensor = torch::from_blob(
        data, record.shape, [file](void*) {}, type);
    const bool aligned = reinterpret_cast<uintptr_t>(data) % SizeOf(record.type) == 0;
    if (!aligned) {  // as bytes first: no load of a whole element may touch that address
      tensor = torch::empty(record.shape, type);
      std::copy(data, data + (record.end - record.begin),
                static_cast<char*>(tensor.mutable_data_ptr()));
    }
    tensors[record.name] = tensor;
  }
  return tensors;
}

absl::StatusOr<TensorMap> ReadSafetensors(const std::filesystem::path& path) {
  TUTTI_ASSIGN_OR_RETURN(std::string bytes, base::ReadFile(path, UINT64_MAX));
  auto tensors = ParseSafetensors(std::move(bytes));
  if (!tensors.ok()) return base::Annotate(tensors.status(), path.string());
  return tensors;
}

TensorSources SourcesOf(const TensorMap& tensors) {
  TensorSources sources;
  for (const auto& [name, tensor] : tensors) {
    sources[name] = {tensor.scalar_type(), tensor.sizes().vec(),
                     [tensor = tensor] { return tensor; }};
  }
  return sources;
}

std::vector<std::string> FileOrder(const TensorSources& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, source] : tensors) names.push_back(name);
  const auto size = [&](const std::string& name) {
    return c10::elementSize(tensors.at(name).type);
  };
  std::stable_sort(names.begin(), names.end(),
                   [&](const auto& a, const auto& b) { return size(a) > size(b); });
  return names;
}

absl::Status AddTensors(FolderWriter& folder, absl::string_view name,
                        const TensorSources& tensors) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<TensorRecord> records, LayOut(tensors));
  TUTTI_ASSIGN_OR_RETURN(const std::string head, FormatSafetensorsHeader(records));
  return folder.Add(name, [&](FolderWriter::Append append) -> absl::Status {
    TUTTI_RETURN_IF_ERROR(append(head));
    for (const TensorRecord& record : records) {
      TUTTI_ASSIGN_OR_RETURN(const torch::Tensor tensor,
                             Fetch(record.name, tensors.at(record.name)));
      TUTTI_RETURN_IF_ERROR(
          append({static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()}));
    }
    return absl::OkStatus();
  });
}

}  // namespace tutti::checkpoint
