// Compares tutti's networks with what another framework's computed
// (tests/training/torchvision_peer.py).
//
//   compare_models FILE.safetensors…
//
// A line of JSON a file: {"model", "outputs", "gradients", "evaluated", ...}, distances relative to
// the other's norm, the largest of all tensors.
#include <ATen/Parallel.h>
#include <torch/nn/modules/dropout.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/models/model.h"
#include "runtime/models/networks/single_shot_detector.h"
#include "runtime/models/state.h"
#include "runtime/tasks/detection.h"

namespace tutti {
namespace {

using checkpoint::TensorMap;
using torch::Tensor;

constexpr int64_t kMost = 4096;

// Those whose names begin with `prefix`, under the rest of their names.
TensorMap Under(const TensorMap& all, absl::string_view prefix) {
  TensorMap some;
  for (const auto& [name, tensor] : all) {
    absl::string_view rest = name;
    if (absl::ConsumePrefix(&rest, prefix)) some[std::string(rest)] = tensor;
  }
  return some;
}

double Distance(const Tensor& ours, const Tensor& theirs, double least = 1e-30) {
  if (ours.sizes() != theirs.sizes()) return INFINITY;
  return (ours - theirs).norm().item<double>() / std::max(theirs.norm().item<double>(), least);
}

Tensor Sampled(const Tensor& gradient) {
  const Tensor flat = gradient.flatten();
  return flat.slice(0, 0, c10::nullopt, std::max<int64_t>(1, flat.numel() / kMost));
}

// A gradient that is zero but for rounding is measured by the others' size.
double GradientDistance(const models::Model& model, const TensorMap& theirs) {
  double largest = 0, distance = 0;
  for (const auto& [name, gradient] : theirs) {
    largest = std::max(largest, gradient.norm().item<double>());
  }
  size_t found = 0;
  for (const auto& parameter : model->named_parameters()) {
    const auto it = theirs.find(parameter.key());
    if (it == theirs.end()) continue;
    ++found;
    const Tensor& own = parameter.value().grad();
    distance = std::max(
        distance, own.defined() ? Distance(Sampled(own), it->second, 1e-4 * largest) : INFINITY);
  }
  return found == theirs.size() ? distance : INFINITY;
}

void WithoutDropout(const models::Model& model) {
  for (const auto& module : model->modules()) {
    if (auto* dropout = module->as<torch::nn::DropoutImpl>()) dropout->options.p(0);
  }
}

// The share of what the other finds that ours does not; where boxes overlap by about as much as
// they may, rounding decides which of them stays.
double Missed(const tasks::Detections& ours, const TensorMap& file) {
  const auto both = [](const Tensor& theirs, const Tensor& own) {
    return theirs.unsqueeze(1) - own.unsqueeze(0);
  };
  const Tensor boxes = both(file.at("found.boxes"), ours.boxes).abs().amax(2);
  const Tensor scores = both(file.at("found.scores"), ours.scores).abs();
  const Tensor same = both(file.at("found.classes"), ours.classes).eq(0);
  const Tensor matched = (boxes.lt(1e-3) & scores.lt(1e-4) & same).any(1);
  return 1 - matched.to(torch::kFloat64).mean().item<double>();
}

// The detector's loss and what it finds, beside what torchvision's finds.
Tensor CompareDetector(const models::Model& model, const TensorMap& file, const Tensor& output,
                       nlohmann::json& line) {
  const auto& detector = dynamic_cast<const models::SingleShotDetector&>(*model);
  const tasks::Detection task(file.at("classes").item<int64_t>(), detector.default_boxes());
  const Tensor targets = task.Targets(file.at("annotations"));
  const Tensor loss = task.LossOf({output}, targets).sum / static_cast<double>(task.Units(targets));
  line["loss"] = Distance(loss.detach(), file.at("loss"));
  const Tensor corners = detector.default_boxes();
  const Tensor half = corners.narrow(1, 2, 2) / 2, centre = corners.narrow(1, 0, 2);
  line["defaults"] = Distance(torch::cat({centre - half, centre + half}, 1), file.at("defaults"));
  Tensor sharper = output.detach()[0].clone();
  sharper.narrow(1, 4, sharper.size(1) - 4).mul_(file.at("sharper").item<double>());
  const tasks::Detections found = tasks::Detect(task.Answer(sharper));
  line["missed"] = Missed(found, file);
  return loss;
}

Tensor Probed(const std::vector<Tensor>& outputs, const TensorMap& file) {
  Tensor sum = torch::zeros({});
  for (size_t i = 0; i < outputs.size(); ++i) {
    sum = sum + (outputs[i] * file.at(absl::StrCat("probe.", i))).sum();
  }
  return sum;
}

absl::StatusOr<nlohmann::json> Compare(const std::filesystem::path& path) {
  TUTTI_ASSIGN_OR_RETURN(const TensorMap file, checkpoint::ReadSafetensors(path));
  const int64_t classes = file.at("classes").item<int64_t>();
  TUTTI_ASSIGN_OR_RETURN(const models::Model model,
                         models::MakeModel({path.stem(), classes}, std::nullopt));
  TUTTI_RETURN_IF_ERROR(models::LoadState(Under(file, "state."), *model));
  WithoutDropout(model);
  nlohmann::json line = {{"model", path.stem()}};
  const std::vector<Tensor> outputs = model->Outputs({file.at("images")});
  double distance = Under(file, "output.").size() == outputs.size() ? 0 : INFINITY;
  for (size_t i = 0; i < outputs.size() && distance < INFINITY; ++i) {
    distance =
        std::max(distance, Distance(outputs[i].detach(), file.at(absl::StrCat("output.", i))));
  }
  line["outputs"] = distance;
  const bool detects = file.contains("annotations");
  (detects ? CompareDetector(model, file, outputs[0], line) : Probed(outputs, file)).backward();
  line["gradients"] = GradientDistance(model, Under(file, "gradient."));
  if (detects) return line;
  model->eval();
  torch::NoGradGuard no_grad;
  line["evaluated"] = Distance(model->forward(file.at("images")), file.at("evaluated"));
  return line;
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  torch::set_num_threads(1);  // threads that wait for each other lose a busy machine
  for (int i = 1; i < argc; ++i) {
    const auto line = tutti::Compare(argv[i]);
    if (!line.ok()) {
      std::fprintf(stderr, "%s\n", line.status().ToString().c_str());
      return 1;
    }
    // JSON has no infinity: it becomes null, which is no small number either.
    std::printf("%s\n", line->dump().c_str());
    std::fflush(stdout);
  }
  return 0;
}
