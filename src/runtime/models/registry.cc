// The networks there are, by name, and how each is initialised.
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/closest.h"
#include "runtime/models/model.h"
#include "runtime/models/residual_network.h"

namespace tutti::models {
namespace {

using R = ResidualOptions;

struct Entry {
  absl::string_view name;
  int64_t input_size;
  ResidualOptions options;
};

// He et al., section 4.2: 6n + 2 layers, stages of 16, 32 and 64 channels, identity shortcuts.
Entry Cifar(absl::string_view name, int64_t n) {
  return {name, 32, {.width = 16, .blocks = {n, n, n}}};
}

// He et al., table 1.
Entry ImageNet(absl::string_view name, R::Block block, std::vector<int64_t> blocks) {
  return {name,
          224,
          {.stem = R::Stem::kDownsampling,
           .block = block,
           .shortcut = R::Shortcut::kProjection,
           .width = 64,
           .blocks = std::move(blocks)}};
}

const std::vector<Entry>& Entries() {
  static const auto* entries = new std::vector<Entry>{
      Cifar("resnet20", 3),
      Cifar("resnet32", 5),
      Cifar("resnet44", 7),
      Cifar("resnet56", 9),
      Cifar("resnet110", 18),
      ImageNet("resnet18", R::Block::kBasic, {2, 2, 2, 2}),
      ImageNet("resnet34", R::Block::kBasic, {3, 4, 6, 3}),
      ImageNet("resnet50", R::Block::kBottleneck, {3, 4, 6, 3}),
      ImageNet("resnet101", R::Block::kBottleneck, {3, 4, 23, 3}),
      ImageNet("resnet152", R::Block::kBottleneck, {3, 8, 36, 3}),
  };
  return *entries;
}

const Entry* Find(absl::string_view name) {
  const auto& entries = Entries();
  const auto it = std::find_if(entries.begin(), entries.end(),
                               [&](const Entry& entry) { return entry.name == name; });
  return it == entries.end() ? nullptr : &*it;
}

// As torchvision: convolutions from a normal distribution of variance 2 / fan_out (He et al. 2015,
// "Delving Deep into Rectifiers"); linear layers uniform in +-1/sqrt(fan_in), torch's default.
void Initialise(torch::nn::Module& model, uint64_t seed) {
  torch::NoGradGuard no_grad;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (const auto& module : model.modules()) {
    if (auto* convolution = module->as<torch::nn::Conv2dImpl>()) {
      torch::Tensor& w = convolution->weight;  // [out, in, k, k]
      const auto fan_out = static_cast<double>(w.size(0) * w.size(2) * w.size(3));
      w.normal_(0, std::sqrt(2 / fan_out), generator);
    } else if (auto* linear = module->as<torch::nn::LinearImpl>()) {
      const double bound = 1 / std::sqrt(static_cast<double>(linear->weight.size(1)));
      linear->weight.uniform_(-bound, bound, generator);
      linear->bias.uniform_(-bound, bound, generator);
    }
  }
}

}  // namespace

absl::StatusOr<Model> MakeModel(const ModelSpec& spec, uint64_t seed) {
  const Entry* entry = Find(spec.name);
  if (entry == nullptr) {
    std::vector<absl::string_view> names;
    for (const Entry& known : Entries()) names.push_back(known.name);
    return absl::NotFoundError(absl::StrCat("no model \"", spec.name, "\"",
                                            base::DidYouMean(spec.name, names), "; there are ",
                                            absl::StrJoin(names, ", ")));
  }
  if (spec.classes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a model needs at least one class, not ", spec.classes));
  }
  ResidualOptions options = entry->options;
  options.classes = spec.classes;
  auto model = std::make_shared<ResidualNetwork>(options);
  Initialise(*model, seed);
  return model;
}

std::vector<std::string> ModelNames() {
  std::vector<std::string> names;
  for (const Entry& entry : Entries()) names.emplace_back(entry.name);
  return names;
}

int64_t InputSize(absl::string_view name) {
  const Entry* entry = Find(name);
  return entry == nullptr ? 0 : entry->input_size;
}

}  // namespace tutti::models
