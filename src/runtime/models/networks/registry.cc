// The networks there are, by name.

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text/closest.h"
#include "runtime/models/layers/initialisation.h"
#include "runtime/models/model.h"
#include "runtime/models/networks/fully_convolutional.h"
#include "runtime/models/networks/inception.h"
#include "runtime/models/networks/mobile_networks.h"
#include "runtime/models/networks/multilayer_perceptron.h"
#include "runtime/models/networks/preactivation_network.h"
#include "runtime/models/networks/residual_network.h"
#include "runtime/models/networks/single_shot_detector.h"
#include "runtime/models/networks/vgg.h"
#include "runtime/models/networks/vision_transformer.h"
#include "runtime/models/script_model.h"

namespace tutti::models {
namespace {

using R = ResidualOptions;

constexpr int64_t kScriptInput = 224;

struct Entry {
  absl::string_view name;
  int64_t input_size;
  std::function<Model(int64_t classes)> make;
  Purpose purpose = Purpose::kClassification;
  bool takes_one_size = false;
};

// He et al., section 4.2: 6n + 2 layers, stages of 16, 32 and 64 channels, identity shortcuts.
ResidualOptions Cifar(int64_t n) { return {.width = 16, .blocks = {n, n, n}}; }

// He et al., table 1.
ResidualOptions ImageNet(R::Block block, std::vector<int64_t> blocks) {
  return {.stem = R::Stem::kDownsampling,
          .block = block,
          .shortcut = R::Shortcut::kProjection,
          .width = 64,
          .blocks = std::move(blocks)};
}

ResidualOptions Resnet50() { return ImageNet(R::Block::kBottleneck, {3, 4, 6, 3}); }
ResidualOptions Resnet101() { return ImageNet(R::Block::kBottleneck, {3, 4, 23, 3}); }

Entry Classifier(absl::string_view name, ResidualOptions options) {
  const int64_t size = options.stem == R::Stem::kPlain ? 32 : 224;
  return {name, size, [options](int64_t classes) mutable -> Model {
            options.classes = classes;
            return std::make_shared<ResidualNetwork>(options);
          }};
}

Entry First(absl::string_view name, ResidualOptions options) {
  options.stride_first = true;
  return Classifier(name, std::move(options));
}

Entry Second(absl::string_view name, ResidualOptions options) {
  const int64_t size = options.stem == R::Stem::kPlain ? 32 : 224;
  return {name, size, [options](int64_t classes) mutable -> Model {
            options.classes = classes;
            return std::make_shared<PreactivationNetwork>(options);
          }};
}

template <typename Network>
Entry Other(absl::string_view name, int64_t size) {
  return {name, size, [](int64_t classes) -> Model { return std::make_shared<Network>(classes); }};
}

// Dosovitskiy et al., table 1; the smaller ones as in Touvron et al. 2021, "Training data-efficient
// image transformers", table 1.
Entry Transformer(absl::string_view name, int64_t image, int64_t patch, int64_t heads) {
  const int64_t width = 64 * heads;
  return {name, image,
          [=](int64_t classes) -> Model {
            return std::make_shared<VisionTransformer>(TransformerOptions{.image = image,
                                                                          .patch = patch,
                                                                          .width = width,
                                                                          .hidden = 4 * width,
                                                                          .heads = heads,
                                                                          .classes = classes});
          },
          Purpose::kClassification, /*takes_one_size=*/true};
}

// `dilated` as torchvision: the last two stages of a network for ImageNet keep their resolution.
Entry Segmenter(absl::string_view name, int64_t size, ResidualOptions options, int64_t dilated,
                bool auxiliary) {
  options.dilated = dilated;
  return {name, size,
          [options, auxiliary](int64_t classes) -> Model {
            return std::make_shared<FullyConvolutional>(options, classes, auxiliary);
          },
          Purpose::kSegmentation};
}

const std::vector<Entry>& Entries() {
  using enum R::Block;
  static const auto* entries = new std::vector<Entry>{
      Classifier("resnet20", Cifar(3)),
      Classifier("resnet32", Cifar(5)),
      Classifier("resnet44", Cifar(7)),
      Classifier("resnet56", Cifar(9)),
      Classifier("resnet110", Cifar(18)),
      Classifier("resnet18", ImageNet(kBasic, {2, 2, 2, 2})),
      Classifier("resnet34", ImageNet(kBasic, {3, 4, 6, 3})),
      Classifier("resnet50", Resnet50()),
      Classifier("resnet101", Resnet101()),
      Classifier("resnet152", ImageNet(kBottleneck, {3, 8, 36, 3})),
      First("resnet50v1", Resnet50()),
      First("resnet101v1", Resnet101()),
      First("resnet152v1", ImageNet(kBottleneck, {3, 8, 36, 3})),
      Second("resnet20v2", Cifar(3)),
      Second("resnet56v2", Cifar(9)),
      Second("resnet110v2", Cifar(18)),
      Second("resnet18v2", ImageNet(kBasic, {2, 2, 2, 2})),
      Second("resnet34v2", ImageNet(kBasic, {3, 4, 6, 3})),
      Second("resnet50v2", Resnet50()),
      Second("resnet101v2", Resnet101()),
      Second("resnet152v2", ImageNet(kBottleneck, {3, 8, 36, 3})),
      Other<Vgg16>("vgg16", 224),
      Other<InceptionV3>("inception_v3", 299),
      Other<MobileNetV1>("mobilenet_v1", 224),
      Other<MobileNetV2>("mobilenet_v2", 224),
      Transformer("vit_ti_4", 32, 4, 3),
      Transformer("vit_ti_16", 224, 16, 3),
      Transformer("vit_s_16", 224, 16, 6),
      Transformer("vit_b_16", 224, 16, 12),
      {"mlp_8", 32,
       [](int64_t classes) -> Model {
         return std::make_shared<MultilayerPerceptron>(32, 8, classes);
       }},
      Segmenter("fcn_resnet20", 64, Cifar(3), 0, false),
      Segmenter("fcn_resnet18", 224, ImageNet(kBasic, {2, 2, 2, 2}), 0, false),
      Segmenter("fcn_resnet50", 480, Resnet50(), 2, false),
      Segmenter("fcn_resnet101", 480, Resnet101(), 2, false),
      Segmenter("fcn_resnet50_aux", 480, Resnet50(), 2, true),
      Segmenter("fcn_resnet101_aux", 480, Resnet101(), 2, true),
      {"ssd64_resnet20", 64, MakeSsd64, Purpose::kDetection, true},
      {"ssd300_vgg16", 300, MakeSsd300, Purpose::kDetection, true},
  };
  return *entries;
}

const Entry* Find(absl::string_view name) {
  const auto& entries = Entries();
  const auto it = std::find_if(entries.begin(), entries.end(),
                               [&](const Entry& entry) { return entry.name == name; });
  return it == entries.end() ? nullptr : &*it;
}

absl::Status NoModel(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const Entry& known : Entries()) names.push_back(known.name);
  return absl::NotFoundError(absl::StrCat("no model \"", name, "\"", base::DidYouMean(name, names),
                                          "; there are ", absl::StrJoin(names, ", "),
                                          ", and script:FILE for a TorchScript module"));
}

}  // namespace

absl::StatusOr<Model> MakeModel(const ModelSpec& spec, std::optional<uint64_t> seed) {
  if (spec.classes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a model needs at least one class, not ", spec.classes));
  }
  if (const std::string file = ScriptFile(spec.name); !file.empty()) return LoadScript(file);
  const Entry* entry = Find(spec.name);
  if (entry == nullptr) return NoModel(spec.name);
  const Model model = entry->make(spec.classes);
  if (seed) {
    torch::NoGradGuard no_grad;
    model->Initialise(FirstDraws(*seed));
  }
  return model;
}

std::vector<std::string> ModelNames() {
  std::vector<std::string> names;
  for (const Entry& entry : Entries()) names.emplace_back(entry.name);
  return names;
}

int64_t InputSize(absl::string_view name) {
  if (!ScriptFile(name).empty()) return kScriptInput;
  const Entry* entry = Find(name);
  return entry == nullptr ? 0 : entry->input_size;
}

bool TakesOneSize(absl::string_view name) {
  const Entry* entry = Find(name);
  return entry != nullptr && entry->takes_one_size;
}

Purpose PurposeOf(absl::string_view name) {
  const Entry* entry = Find(name);
  return entry == nullptr ? Purpose::kClassification : entry->purpose;
}

}  // namespace tutti::models
