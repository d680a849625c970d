#include "runtime/models/script_model.h"

#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/nn/module.h>
#include <torch/script.h>

#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace tutti::models {
namespace {

using torch::Tensor;

// Gives `to` the tensors of `from`, under the same names. False if a tensor has two.
bool Mirror(const torch::jit::Module& from, torch::nn::Module& to,
            std::set<const c10::TensorImpl*>& seen) {
  bool once = true;
  for (const auto& parameter : from.named_parameters(/*recurse=*/false)) {
    to.register_parameter(parameter.name, parameter.value, parameter.value.requires_grad());
    once &= seen.insert(parameter.value.unsafeGetTensorImpl()).second;
  }
  for (const auto& buffer : from.named_buffers(/*recurse=*/false)) {
    to.register_buffer(buffer.name, buffer.value);
    once &= seen.insert(buffer.value.unsafeGetTensorImpl()).second;
  }
  for (const auto& child : from.named_children()) {
    const auto module = std::make_shared<torch::nn::Module>();
    once &= Mirror(child.value, *module, seen);
    to.register_module(child.name, module);
  }
  return once;
}

std::vector<Tensor> TensorsOf(const c10::IValue& value) {
  if (value.isTensor()) return {value.toTensor()};
  if (value.isTensorList()) return value.toTensorVector();
  std::vector<Tensor> tensors;
  if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) {
      if (element.isTensor()) tensors.push_back(element.toTensor());
    }
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) {
      if (entry.value().isTensor()) tensors.push_back(entry.value().toTensor());
    }
  }
  TORCH_CHECK(!tensors.empty(), "the script's forward returns no tensor but ", value.tagKind());
  return tensors;
}

class ScriptModel : public ModelImpl {
 public:
  explicit ScriptModel(torch::jit::Module script) : script_(std::move(script)) {
    std::set<const c10::TensorImpl*> seen;
    shares_ = !Mirror(script_, *this, seen);
  }
  bool shares_tensors() const { return shares_; }
  const torch::jit::Module& script() const { return script_; }

  void train(bool on) override {
    torch::nn::Module::train(on);
    script_.train(on);
  }
  Tensor forward(Tensor images) override { return Outputs({std::move(images)})[0]; }
  std::vector<Tensor> Outputs(const std::vector<Tensor>& inputs) override {
    const torch::jit::GraphOptimizerEnabledGuard as_written(false);
    std::vector<Tensor> outputs = TensorsOf(script_.forward({inputs.begin(), inputs.end()}));
    if (!is_training()) outputs.resize(1);
    return outputs;
  }

 private:
  torch::jit::Module script_;
  bool shares_ = false;
};

absl::Status NoScript(const std::filesystem::path& file, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(file.string(), ": ", why));
}

}  // namespace

std::string ScriptFile(absl::string_view name) {
  return absl::ConsumePrefix(&name, "script:") ? std::string(name) : "";
}

absl::StatusOr<Model> LoadScript(const std::filesystem::path& file, bool trained) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    return absl::NotFoundError(absl::StrCat("no TorchScript file ", file.string()));
  }
  try {
    torch::jit::Module script = torch::jit::load(file.string(), torch::Device(torch::kCPU));
    if (!script.find_method("forward")) return NoScript(file, "has no forward(images)");
    auto model = std::make_shared<ScriptModel>(std::move(script));
    if (trained && model->shares_tensors()) {
      return NoScript(file, "two of its parameters are one tensor, which cannot be trained here");
    }
    if (trained && model->parameters().empty()) {
      return NoScript(file, "has no parameters to train; was it frozen (torch.jit.freeze)?");
    }
    model->train(trained);
    return model;
  } catch (const c10::Error& problem) {
    return NoScript(file,
                    absl::StrCat("is no TorchScript module: ", problem.what_without_backtrace()));
  }
}

absl::Status CheckClasses(const Model& model, int64_t height, int64_t width, int64_t classes) {
  const bool training = model->is_training();
  absl::Status status;
  try {
    torch::NoGradGuard no_grad;
    model->eval();
    const Tensor logits = model->forward(torch::zeros({1, 3, height, width}));
    if (logits.dim() != 2 || logits.size(0) != 1 || logits.size(1) != classes) {
      status = absl::InvalidArgumentError(
          absl::StrCat("for one image it returns [", absl::StrJoin(logits.sizes(), ", "),
                       "] and should return [1, ", classes, "], a logit a class"));
    }
  } catch (const std::exception& problem) {
    status = absl::InvalidArgumentError(
        absl::StrCat("it takes no images of ", width, " x ", height, " pixels: ", problem.what()));
  }
  model->train(training);
  return status;
}

// For the other half of this room's dealings with TorchScript.
const torch::jit::Module* ScriptOf(const ModelImpl& model) {
  const auto* script = dynamic_cast<const ScriptModel*>(&model);
  return script == nullptr ? nullptr : &script->script();
}

}  // namespace tutti::models
