#include "runtime/checkpoint/safetensors.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
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
struct Layout {
  std::vector<TensorRecord> records;
  std::vector<torch::Tensor> tensors;  // contiguous, on the CPU; as records
};

absl::StatusOr<Layout> LayOut(const TensorMap& tensors) {
  Layout layout;
  std::vector<std::pair<TensorRecord, torch::Tensor>> order;
  for (const auto& [name, tensor] : tensors) {
    const auto type = FromTorch(tensor.scalar_type());
    if (!type) {
      return absl::InvalidArgumentError(absl::StrCat("tensor \"", name, "\" is of type ",
                                                     c10::toString(tensor.scalar_type()),
                                                     ", which safetensors files do not have"));
    }
    order.push_back(
        {{name, *type, tensor.sizes().vec()}, tensor.detach().to(torch::kCPU).contiguous()});
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return SizeOf(a.first.type) > SizeOf(b.first.type);
  });
  uint64_t at = 0;
  for (auto& [record, tensor] : order) {
    record.begin = at;
    record.end = at += tensor.nbytes();
    layout.records.push_back(std::move(record));
    layout.tensors.push_back(std::move(tensor));
  }
  return layout;
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

absl::Status AddTensors(FolderWriter& folder, absl::string_view name, const TensorMap& tensors) {
  TUTTI_ASSIGN_OR_RETURN(const Layout layout, LayOut(tensors));
  TUTTI_ASSIGN_OR_RETURN(const std::string head, FormatSafetensorsHeader(layout.records));
  std::vector<absl::string_view> pieces = {head};
  for (const torch::Tensor& tensor : layout.tensors) {
    pieces.emplace_back(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  }
  return folder.Add(name, pieces);
}

}  // namespace tutti::checkpoint
