#include "runtime/scoring/trained_model.h"

#include <torch/types.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"
#include "runtime/checkpoint/model_folder.h"
#include "runtime/data/augment/load_image.h"
#include "runtime/device/cpu/bf16/convolution_bf16.h"
#include "runtime/device/cpu/bf16/kept_weights.h"
#include "runtime/device/cpu/convolution_ops.h"
#include "runtime/device/cpu/fp32/convolution_fp32.h"
#include "runtime/device/device.h"
#include "runtime/device/precision/detect.h"
#include "runtime/models/model.h"
#include "runtime/models/script_model.h"
#include "runtime/models/state.h"
#include "runtime/scoring/foreign_model.h"
#include "runtime/tasks/task.h"

namespace tutti::scoring {
namespace {

data::Augmentation AugmentationOf(const checkpoint::ModelInput& input) {
  data::Augmentation augmentation;
  augmentation.height = static_cast<int>(input.height);
  augmentation.width = static_cast<int>(input.width);
  augmentation.resize = static_cast<int>(input.resize);
  augmentation.stretch = input.stretch;
  std::copy(input.mean.begin(), input.mean.end(), augmentation.mean);
  std::copy(input.stddev.begin(), input.stddev.end(), augmentation.stddev);
  return augmentation;
}

// Products by patches are for the whole process, and a script computes what Python does.
void UseProductsFor(bool is_script) {
  static std::atomic<bool> has_script = false;
  has_script = has_script || is_script;
  device::UseOwnConvolutions();
  device::cpu::UseWinograd(!has_script);
  device::cpu::fp32::UsePatches(true);
}

device::PrecisionTaken TakePrecision(absl::string_view asked, const checkpoint::ModelFolder& folder,
                                     bool is_foreign) {
  if (asked == "auto" && is_foreign) {
    return {"fp32", "precision fp32 (auto): the model is not tutti's, and answers as in Python"};
  }
  if (asked == "auto" && folder.precision == "fp32") {
    return {"fp32", "precision fp32 (auto): the model was trained in fp32"};
  }
  return device::DetectPrecision(asked, torch::kCPU);
}

// A script knows nothing of tutti's layers: its matrices and kernels become bf16, and the biases
// beside them; norms, which have no matrix, stay in fp32.
void ToBf16(models::ModelImpl& network, bool is_script) {
  if (!is_script) return network.to(torch::kBFloat16);
  const torch::NoGradGuard no_grad;
  for (const auto& module : network.modules()) {
    const auto parameters = module->named_parameters(/*recurse=*/false);
    const torch::Tensor* const weight = parameters.find("weight");
    if (weight == nullptr || weight->dim() < 2) continue;
    for (const auto& parameter : parameters) {
      torch::Tensor values = parameter.value();
      values.set_data(values.to(torch::kBFloat16));
    }
  }
}

// Lays kernels out as convolutions take them, which would else do so again for each batch, and
// returns their addresses.
std::set<const void*> UseChannelsLast(models::ModelImpl& network) {
  const torch::NoGradGuard no_grad;
  std::set<const void*> kernels;
  for (torch::Tensor& parameter : network.parameters()) {
    if (parameter.dim() != 4) continue;
    parameter.set_data(parameter.contiguous(torch::MemoryFormat::ChannelsLast));
    kernels.insert(parameter.const_data_ptr());
  }
  return kernels;
}

// The one line of libtorch's many that says what went wrong: a script's own trace comes before it.
std::string ReasonOf(const std::exception& problem) {
  const absl::string_view text = problem.what();
  const size_t at = text.rfind("RuntimeError: ");
  const absl::string_view rest = text.substr(at == absl::string_view::npos ? 0 : at);
  return std::string(rest.substr(0, rest.find('\n')));
}

absl::StatusOr<models::Model> OpenNetwork(const std::filesystem::path& path,
                                          const checkpoint::ModelFolder& folder,
                                          const std::string& name) {
  const auto count = static_cast<int64_t>(folder.classes.size());
  auto network = models::MakeModel({name, count}, std::nullopt);
  if (!network.ok()) {
    return base::Annotate(network.status(), (path / "model.json").string());
  }
  if (absl::Status status = models::LoadState(folder.tensors, **network); !status.ok()) {
    return base::Annotate(
        status, absl::StrCat((path / "model.safetensors").string(), " does not fit model.json (",
                             folder.architecture, ", ", count, " classes)"));
  }
  return network;
}

}  // namespace

struct TrainedModel::Loaded {
  ModelFacts facts;
  data::Augmentation augmentation;
  models::Model network;
  bool is_script = false;
  bool channels_last = false;               // the network takes [n, height, width, 3]
  std::shared_ptr<const tasks::Task> task;  // of a network of tutti's
  std::unique_ptr<const Head> head;
  std::optional<device::cpu::KeptWeights> weights;  // of `network`
  absl::Mutex mutex;
  // Each decodes one image at a time, and keeps its memory for the next.
  std::vector<std::unique_ptr<data::ImageLoader>> loaders ABSL_GUARDED_BY(mutex);

  absl::Status CheckScript() {
    if (!is_script) return absl::OkStatus();
    try {
      const torch::InferenceMode inference;
      return head->Check(Output(torch::zeros({1, facts.height, facts.width, 3}), false));
    } catch (const std::exception& problem) {
      return absl::InvalidArgumentError(absl::StrCat("it takes no images of ", facts.width, " x ",
                                                     facts.height, " pixels: ", ReasonOf(problem)));
    }
  }

  // What model.pt gives for [n, height, width, 3], in fp32.
  torch::Tensor Output(const torch::Tensor& pixels, bool mirrored) {
    const bool bf16 = facts.precision == "bf16";
    const device::cpu::KeptWeights::Use kept(*weights);
    const torch::Tensor images = bf16 ? pixels.to(torch::kBFloat16) : pixels;
    torch::Tensor output = Forward(images);
    if (mirrored) output = (output + Forward(images.flip(2))) / 2;
    output = output.to(torch::kFloat32);
    return task == nullptr ? output : task->Answer(output);
  }
  torch::Tensor Forward(const torch::Tensor& images) {
    return network->forward(channels_last ? images : images.permute({0, 3, 1, 2}));
  }

  std::vector<Answer> Run(std::span<const float* const> images, bool mirrored) {
    const torch::InferenceMode inference;
    const auto count = static_cast<int64_t>(images.size());
    try {
      const torch::Tensor pixels = torch::empty({count, facts.height, facts.width, 3});
      float* to = pixels.mutable_data_ptr<float>();
      const auto values = static_cast<size_t>(facts.height * facts.width * 3);
      for (const float* image : images) {
        std::memcpy(to, image, values * sizeof(float));
        to += values;
      }
      const torch::Tensor output = Output(pixels, mirrored);
      std::vector<Answer> answers = head->Read(output);
      const torch::Tensor finite = output.flatten(1).isfinite().all(1);
      for (int64_t i = 0; i < count; ++i) {
        if (finite[i].item<bool>()) continue;
        answers[static_cast<size_t>(i)].status = absl::InternalError(
            "the model's output is not finite: its training must have diverged");
      }
      return answers;
    } catch (const std::exception& problem) {
      Answer failed;
      failed.status = absl::InternalError(absl::StrCat("the model failed: ", ReasonOf(problem)));
      return std::vector<Answer>(images.size(), failed);
    }
  }
};

TrainedModel::TrainedModel(std::unique_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
TrainedModel::~TrainedModel() = default;
const ModelFacts& TrainedModel::facts() const { return loaded_->facts; }
const Head& TrainedModel::head() const { return *loaded_->head; }

absl::StatusOr<std::unique_ptr<TrainedModel>> TrainedModel::Open(const std::filesystem::path& path,
                                                                 absl::string_view precision) {
  TUTTI_RETURN_IF_ERROR(device::Open("cpu").status());
  auto loaded = std::make_unique<Loaded>();
  checkpoint::ModelFolder folder;
  const bool is_foreign = IsForeignModel(path);
  if (is_foreign) {
    TUTTI_ASSIGN_OR_RETURN(ForeignModel foreign, ReadForeignModel(path));
    loaded->channels_last = foreign.channels_last;
    loaded->is_script = true;
    TUTTI_ASSIGN_OR_RETURN(loaded->network, models::LoadScript(foreign.script, /*trained=*/false));
    folder = std::move(foreign.folder);
  } else {
    TUTTI_ASSIGN_OR_RETURN(folder, checkpoint::ReadModelFolder(path));
    const std::string file = models::ScriptFile(folder.architecture);
    loaded->is_script = !file.empty();
    const std::string name =
        file.empty() ? folder.architecture : absl::StrCat("script:", (path / file).string());
    TUTTI_ASSIGN_OR_RETURN(loaded->network, OpenNetwork(path, folder, name));
  }
  if (!loaded->is_script) {
    const auto count = static_cast<int64_t>(folder.classes.size());
    TUTTI_ASSIGN_OR_RETURN(loaded->task,
                           tasks::MakeTask({folder.architecture, count}, *loaded->network, {}));
  }
  loaded->augmentation = AugmentationOf(folder.input);
  auto head = MakeHead({folder.task, folder.classes, folder.input.height, folder.input.width});
  if (!head.ok()) return base::Annotate(head.status(), path.string());
  loaded->head = *std::move(head);
  loaded->network->eval();
  UseProductsFor(loaded->is_script);
  const device::PrecisionTaken taken = TakePrecision(precision, folder, is_foreign);
  loaded->facts = {.task = folder.task,
                   .platform = loaded->is_script ? "torchscript" : "tutti",
                   .precision = taken.precision,
                   .precision_why = taken.why,
                   .classes = folder.classes,
                   .height = folder.input.height,
                   .width = folder.input.width};
  if (taken.precision == "bf16") ToBf16(*loaded->network, loaded->is_script);
  loaded->weights.emplace(UseChannelsLast(*loaded->network));
  if (absl::Status status = loaded->CheckScript(); !status.ok()) {
    return base::Annotate(status, path.string());
  }
  return std::unique_ptr<TrainedModel>(new TrainedModel(std::move(loaded)));
}

size_t TrainedModel::values() const {
  return static_cast<size_t>(loaded_->facts.height * loaded_->facts.width * 3);
}

absl::StatusOr<data::ImageSize> TrainedModel::Decode(absl::string_view encoded, float* pixels) {
  std::unique_ptr<data::ImageLoader> loader;
  {
    absl::MutexLock lock(&loaded_->mutex);
    if (!loaded_->loaders.empty()) {
      loader = std::move(loaded_->loaders.back());
      loaded_->loaders.pop_back();
    }
  }
  if (loader == nullptr) {
    TUTTI_ASSIGN_OR_RETURN(
        loader, data::ImageLoader::Make(loaded_->augmentation, data::PixelType::kFloat32));
  }
  const absl::StatusOr<data::ImageSize> size = loader->Load(encoded, pixels);
  absl::MutexLock lock(&loaded_->mutex);
  loaded_->loaders.push_back(std::move(loader));
  return size;
}

std::vector<Answer> TrainedModel::Run(std::span<const float* const> images) {
  return loaded_->Run(images, /*mirrored=*/false);
}

std::vector<Answer> TrainedModel::RunMirrored(std::span<const float* const> images) {
  return loaded_->Run(images, /*mirrored=*/true);
}

}  // namespace tutti::scoring
