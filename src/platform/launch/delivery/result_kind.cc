#include "platform/launch/delivery/result_kind.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace tutti::launch {
namespace {

constexpr std::array<absl::string_view, 13> kModels = {
    ".bst", ".ckpt", ".h5",  ".joblib", ".keras",       ".onnx",  ".pickle",
    ".pkl", ".pt",   ".pth", ".pt2",    ".safetensors", ".tflite"};
// Tables and texts are results if their names say so.
constexpr std::array<absl::string_view, 11> kTables = {
    ".csv", ".json", ".jsonl", ".log", ".npy", ".npz", ".parquet", ".tsv", ".txt", ".yaml", ".yml"};
constexpr std::array<absl::string_view, 7> kWords = {"metric",  "result",  "score",     "predict",
                                                     "history", "evaluat", "submission"};
// The folders in which PyTorch Lightning, MLflow, and Weights & Biases keep their logs.
constexpr std::array<absl::string_view, 3> kLoggers = {"lightning_logs", "mlruns", "wandb"};

template <typename List, typename Test>
bool Any(const List& list, const Test& test) {
  return std::any_of(list.begin(), list.end(), test);
}

bool IsOneOf(absl::string_view name, const auto& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool IsResultByKind(const std::filesystem::path& path) {
  const std::string name = absl::AsciiStrToLower(path.filename().native());
  const std::string extension = std::filesystem::path(name).extension().native();
  if (absl::StrContains(name, ".tfevents.") || IsOneOf(extension, kModels)) return true;
  if (Any(path.parent_path(), [](const auto& part) { return IsOneOf(part.native(), kLoggers); })) {
    return true;
  }
  return IsOneOf(extension, kTables) &&
         Any(kWords, [&](absl::string_view word) { return absl::StrContains(name, word); });
}

}  // namespace tutti::launch
