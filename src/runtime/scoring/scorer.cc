#include "runtime/scoring/scorer.h"

#include <torch/types.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "runtime/checkpoint/model_folder.h"
#include "runtime/data/augment/load_image.h"
#include "runtime/data/decode/image_decoder.h"
#include "runtime/data/source/image_files.h"
#include "runtime/device/autocast.h"
#include "runtime/device/cpu/bf16/convolution_bf16.h"
#include "runtime/device/cpu/convolution_ops.h"
#include "runtime/device/cpu/fp32/convolution_fp32.h"
#include "runtime/device/device.h"
#include "runtime/device/precision/detect.h"
#include "runtime/models/model.h"
#include "runtime/models/script_model.h"
#include "runtime/models/state.h"

namespace tutti::scoring {
namespace {

constexpr int64_t kBatch = 32;  // images that go through the network together
constexpr uint64_t kMaxImageBytes = uint64_t{256} << 20;

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

absl::Status LoadInto(const std::string& file, const data::Augmentation& augmentation,
                      torch::Tensor pixels) {
  TUTTI_ASSIGN_OR_RETURN(const std::string encoded, base::ReadFile(file, kMaxImageBytes));
  return base::Annotate(
      data::LoadImage(encoded, augmentation, data::PixelType::kFloat32, pixels.mutable_data_ptr()),
      file);
}

// The network's name, where it lies beside its description.
std::string NameIn(const std::filesystem::path& folder, const std::string& architecture) {
  const std::string file = models::ScriptFile(architecture);
  return file.empty() ? architecture : absl::StrCat("script:", (folder / file).string());
}

absl::Status CheckClassifies(const models::Model& network, const checkpoint::ModelFolder& folder) {
  if (models::PurposeOf(folder.architecture) != models::Purpose::kClassification) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder.architecture, " is for ", folder.task,
                     ", and scores are of classes of images; model.pt in the folder answers in "
                     "Python (docs/formats/checkpoint.md)"));
  }
  if (models::ScriptFile(folder.architecture).empty()) return absl::OkStatus();
  return models::CheckClasses(network, folder.input.height, folder.input.width,
                              static_cast<int64_t>(folder.classes.size()));
}

}  // namespace

struct Scorer::Loaded {
  models::Model network;
  std::vector<std::string> classes;
  data::Augmentation augmentation;
  device::PrecisionTaken precision;

  // Probabilities [n, classes] of the images [n, H, W, 3].
  torch::Tensor Probabilities(const torch::Tensor& pixels, bool mirrored) {
    const bool bf16 = precision.precision == "bf16";
    const device::Autocast autocast(bf16, torch::kCPU);
    const torch::Tensor images =
        pixels.permute({0, 3, 1, 2}).to(bf16 ? torch::kBFloat16 : torch::kFloat32);
    torch::Tensor logits = network->forward(images);
    if (mirrored) logits = (logits + network->forward(images.flip(3))) / 2;
    return torch::softmax(logits, 1, torch::kFloat32);
  }

  void Fill(const torch::Tensor& probabilities, int64_t top, FileScore& score) {
    if (!probabilities.isfinite().all().item<bool>()) {
      score.status = absl::InternalError(absl::StrCat(
          score.file, ": the model's output is not finite: its training must have diverged"));
      return;
    }
    const auto [values, indices] = probabilities.topk(std::min<int64_t>(top, classes.size()));
    for (int64_t i = 0; i < values.size(0); ++i) {
      score.predictions.push_back({classes[indices[i].item<int64_t>()], values[i].item<double>()});
    }
  }

  void ScoreBatch(std::span<FileScore> scores, int64_t top, bool mirrored) {
    const torch::Tensor images = torch::empty(
        {static_cast<int64_t>(scores.size()), augmentation.height, augmentation.width, 3});
    std::vector<FileScore*> readable;
    for (FileScore& score : scores) {
      const auto row = static_cast<int64_t>(readable.size());
      score.status = LoadInto(score.file, augmentation, images[row]);
      if (score.status.ok()) readable.push_back(&score);
    }
    if (readable.empty()) return;
    const auto count = static_cast<int64_t>(readable.size());
    const torch::Tensor probabilities = Probabilities(images.narrow(0, 0, count), mirrored);
    for (int64_t i = 0; i < count; ++i) Fill(probabilities[i], top, *readable[i]);
  }
};

Scorer::Scorer(std::unique_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
Scorer::Scorer(Scorer&&) noexcept = default;
Scorer::~Scorer() = default;

const std::string& Scorer::precision_taken() const { return loaded_->precision.why; }

absl::StatusOr<FilesToScore> FindFilesToScore(std::span<const std::string> paths) {
  FilesToScore found;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      found.files.push_back(path);
      continue;
    }
    data::LeftOutFiles left_out;
    TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> images,
                           data::ImagesBelow(path, "", left_out));
    for (const std::string& image : images) {
      found.files.push_back((std::filesystem::path(path) / image).string());
    }
    for (std::string& remark : left_out.Remarks()) {
      found.remarks.push_back(absl::StrCat(path, ": ", remark));
    }
    if (images.empty()) {
      return absl::NotFoundError(
          absl::StrCat(path, " has no images: files that end in ", data::ImageEndings()));
    }
  }
  return found;
}

absl::StatusOr<Scorer> Scorer::Open(const std::filesystem::path& model_folder,
                                    absl::string_view precision) {
  TUTTI_RETURN_IF_ERROR(device::Open("cpu").status());
  TUTTI_ASSIGN_OR_RETURN(const checkpoint::ModelFolder folder,
                         checkpoint::ReadModelFolder(model_folder));
  const auto count = static_cast<int64_t>(folder.classes.size());
  auto network =
      models::MakeModel({NameIn(model_folder, folder.architecture), count}, std::nullopt);
  if (!network.ok()) {
    return base::Annotate(network.status(), (model_folder / "model.json").string());
  }
  if (absl::Status status = models::LoadState(folder.tensors, **network); !status.ok()) {
    return base::Annotate(status, absl::StrCat((model_folder / "model.safetensors").string(),
                                               " does not fit model.json (", folder.architecture,
                                               ", ", count, " classes)"));
  }
  if (absl::Status status = CheckClassifies(*network, folder); !status.ok()) {
    return base::Annotate(status, model_folder.string());
  }
  (*network)->eval();
  device::UseOwnConvolutions();
  device::cpu::UseWinograd(models::ScriptFile(folder.architecture).empty());
  device::cpu::fp32::UsePatches(true);
  return Scorer(std::make_unique<Loaded>(Loaded{*std::move(network), folder.classes,
                                                AugmentationOf(folder.input),
                                                device::DetectPrecision(precision, torch::kCPU)}));
}

std::vector<FileScore> Scorer::Score(std::span<const std::string> files, int top, bool mirrored) {
  const torch::InferenceMode inference;
  std::vector<FileScore> scores(files.size());
  for (size_t i = 0; i < files.size(); ++i) scores[i].file = files[i];
  for (size_t i = 0; i < scores.size(); i += kBatch) {
    const size_t count = std::min<size_t>(kBatch, scores.size() - i);
    loaded_->ScoreBatch(std::span(scores).subspan(i, count), top, mirrored);
  }
  return scores;
}

}  // namespace tutti::scoring
