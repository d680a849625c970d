#include "runtime/models/state.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace tutti::models {
namespace {

// "missing fc.weight, fc.bias and 12 more".
void Describe(absl::string_view what, const std::vector<std::string>& names,
              std::vector<std::string>& into) {
  constexpr size_t kShown = 3;
  if (names.empty()) return;
  const size_t shown = std::min(names.size(), kShown);
  std::string text =
      absl::StrCat(what, " ", absl::StrJoin(names.begin(), names.begin() + shown, ", "));
  if (names.size() > shown) absl::StrAppend(&text, " and ", names.size() - shown, " more");
  into.push_back(std::move(text));
}

std::string Shape(const torch::Tensor& tensor) {
  return absl::StrCat("[", absl::StrJoin(tensor.sizes(), ", "), "]");
}

}  // namespace

bool IsTokenOrPosition(absl::string_view parameter) {
  const absl::string_view own = parameter.substr(parameter.rfind('.') + 1);  // after the module's
  for (const absl::string_view name : {"class_token", "cls_token", "pos_embedding", "pos_embed"}) {
    if (own == name) return true;
  }
  return false;
}

std::map<std::string, torch::Tensor> StateOf(const torch::nn::Module& module) {
  std::map<std::string, torch::Tensor> state;
  for (const auto& parameter : module.named_parameters()) {
    state[parameter.key()] = parameter.value().detach();
  }
  for (const auto& buffer : module.named_buffers()) state[buffer.key()] = buffer.value().detach();
  return state;
}

absl::Status CheckState(const std::map<std::string, torch::Tensor>& state,
                        const std::map<std::string, torch::Tensor>& own) {
  std::vector<std::string> missing, unexpected, shapes;
  for (const auto& [name, tensor] : own) {
    const auto it = state.find(name);
    if (it == state.end()) {
      missing.push_back(name);
    } else if (it->second.sizes() != tensor.sizes()) {
      shapes.push_back(absl::StrCat(name, " (", Shape(it->second), ", needs ", Shape(tensor), ")"));
    }
  }
  for (const auto& [name, tensor] : state) {
    if (!own.contains(name)) unexpected.push_back(name);
  }
  std::vector<std::string> differences;
  Describe("missing", missing, differences);
  Describe("unexpected", unexpected, differences);
  Describe("of another shape", shapes, differences);
  if (differences.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the tensors are another model's: ", absl::StrJoin(differences, "; ")));
}

absl::StatusOr<std::vector<std::string>> LoadFitting(
    const std::map<std::string, torch::Tensor>& state, torch::nn::Module& module) {
  auto own = StateOf(module);
  std::vector<std::string> unexpected, stay, differences;
  for (const auto& [name, tensor] : state) {
    if (!own.contains(name)) unexpected.push_back(name);
  }
  Describe("the model has no", unexpected, differences);
  if (!differences.empty()) return absl::InvalidArgumentError(differences[0]);
  const auto fits = [&](const auto& name, const torch::Tensor& tensor) {
    const auto it = state.find(name);
    return it != state.end() && it->second.sizes() == tensor.sizes();
  };
  for (const auto& [name, tensor] : own) {
    if (!fits(name, tensor)) stay.push_back(name);
  }
  if (stay.size() == own.size()) {
    return absl::InvalidArgumentError("no tensor is of the shape that the model has");
  }
  torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : own) {
    if (fits(name, tensor)) tensor.copy_(state.at(name));
  }
  return stay;
}

absl::Status LoadState(const std::map<std::string, torch::Tensor>& state,
                       torch::nn::Module& module) {
  auto own = StateOf(module);
  TUTTI_RETURN_IF_ERROR(CheckState(state, own));
  torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : own) tensor.copy_(state.at(name));
  return absl::OkStatus();
}

}  // namespace tutti::models
