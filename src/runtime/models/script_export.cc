#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/nn/module.h>
#include <torch/script.h>

#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/models/script_model.h"

namespace tutti::models {

const torch::jit::Module* ScriptOf(const ModelImpl& model);  // script_model.cc

namespace {

using torch::Tensor;
namespace jit = torch::jit;

// A script module with the tensors and the names of `from`, not yet with code.
jit::Module Skeleton(const torch::nn::Module& from,
                     const std::shared_ptr<jit::CompilationUnit>& unit, const std::string& name) {
  jit::Module to(c10::QualifiedName(name), unit, /*shouldMangle=*/true);
  to.register_attribute("training", c10::BoolType::get(), false);
  for (const auto& parameter : from.named_parameters(/*recurse=*/false)) {
    to.register_parameter(parameter.key(), parameter.value(), /*is_buffer=*/false);
  }
  for (const auto& buffer : from.named_buffers(/*recurse=*/false)) {
    to.register_buffer(buffer.key(), buffer.value());
  }
  for (const auto& child : from.named_children()) {
    to.register_module(child.key(), Skeleton(*child.value(), unit, name));
  }
  return to;
}

// The tensors that training goes on with are views of flat memory; the file gets its own.
void OwnTensors(jit::Module& module) {
  const auto own = [&](const std::string& name, const Tensor& tensor, bool trained) {
    Tensor copy = tensor.detach().to(torch::kCPU).clone(torch::MemoryFormat::Contiguous);
    module.setattr(name, copy.set_requires_grad(trained));
  };
  for (const auto& parameter : module.named_parameters(/*recurse=*/false)) {
    own(parameter.name, parameter.value, /*trained=*/true);
  }
  for (const auto& buffer : module.named_buffers(/*recurse=*/false)) {
    own(buffer.name, buffer.value, /*trained=*/false);
  }
  for (auto child : module.named_children()) OwnTensors(child.value);
}

jit::Module Traced(const Model& model, int64_t height, int64_t width) {
  const auto unit = std::make_shared<jit::CompilationUnit>();
  jit::Module script = Skeleton(*model, unit, "__torch__.tutti.Network");
  const Tensor example =
      torch::zeros({2, 3, height, width}, model->parameters()[0].options().requires_grad(false));
  const auto run = [&](jit::Stack inputs) -> jit::Stack {
    return {model->forward(inputs.at(0).toTensor())};
  };
  const auto no_names = [](const Tensor&) { return std::string(); };
  const auto traced = jit::tracer::trace({example}, run, no_names, /*strict=*/true,
                                         /*force_outplace=*/false, &script, {"images"});
  const std::shared_ptr<jit::Graph> graph = traced.first->graph;
  jit::EliminateDeadCode(graph);
  const c10::QualifiedName name(*script.type()->name(), "forward");
  script.type()->addMethod(unit->create_function(name, graph));
  OwnTensors(script);
  return script;
}

std::string BytesOf(const jit::Module& script) {
  std::ostringstream out;
  script.save(out);
  return std::move(out).str();
}

}  // namespace

absl::StatusOr<std::string> ToTorchScript(const Model& model, int64_t height, int64_t width) {
  const bool training = model->is_training();
  absl::StatusOr<std::string> bytes;
  try {
    torch::NoGradGuard no_grad;
    model->eval();
    if (const jit::Module* script = ScriptOf(*model)) {
      jit::Module copy = script->deepcopy(torch::Device(torch::kCPU));
      OwnTensors(copy);
      bytes = BytesOf(copy);
    } else {
      bytes = BytesOf(Traced(model, height, width));
    }
  } catch (const std::exception& problem) {
    jit::tracer::abandon();
    bytes = absl::InternalError(absl::StrCat("no TorchScript of the model: ", problem.what()));
  }
  model->train(training);
  return bytes;
}

}  // namespace tutti::models
