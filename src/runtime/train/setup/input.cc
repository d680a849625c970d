#include "runtime/train/setup/input.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status.h"
#include "runtime/data/annotation/annotation.h"

namespace tutti::train {
namespace {

constexpr int64_t kSmallInput = 64;  // below it CIFAR's ways are usual, above it ImageNet's

// Per rank; no gradients, so memory sets no lower limit, save where an image's output is large.
int EvaluationBatch(const ModelInputSpec& spec) {
  return spec.annotations == data::Annotations::kLabels ? 100 : 8;
}

struct Statistics {
  std::array<double, 3> mean, stddev;
};
// The statistics of the training images of CIFAR-10 and ImageNet, which are usual for other images
// too.
constexpr Statistics kCifar = {{0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}};
constexpr Statistics kImageNet = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};

// The least area of a crop in training, where pixels or boxes are to be told apart: half an image's
// sides.
constexpr double kLeastArea = 0.25;

data::Augmentation EvaluationOf(const Recipe& recipe, const ModelInputSpec& spec) {
  const int64_t size = spec.size;
  const Statistics& usual = size <= kSmallInput ? kCifar : kImageNet;
  data::Augmentation result;
  result.height = result.width = static_cast<int>(size);
  if (spec.annotations == data::Annotations::kLabels) {
    // 256 for 224, as is usual.
    result.fit = size <= kSmallInput;  // CIFAR's are copied, MNIST's 28 pixels resized for 32
    result.resize = result.fit ? 0 : static_cast<int>(size * 8 / 7);
  } else if (spec.annotations == data::Annotations::kMasks) {
    result.resize = static_cast<int>(size);
  } else {
    result.stretch = true;  // no object is left out
  }
  for (size_t c = 0; c < 3; ++c) {
    result.mean[c] = static_cast<float>(recipe.mean.empty() ? usual.mean[c] : recipe.mean[c]);
    result.stddev[c] =
        static_cast<float>(recipe.stddev.empty() ? usual.stddev[c] : recipe.stddev[c]);
  }
  return result;
}

data::Augmentation TrainingOf(const Recipe& recipe, const ModelInputSpec& spec,
                              data::Augmentation augmentation) {
  if (recipe.augment != "none") {
    augmentation.flip = recipe.alternate_flip ? data::Flip::kAlternately : data::Flip::kByChance;
  }
  augmentation.erase = recipe.erase;
  const bool crop = recipe.augment == "crop";
  if (!crop && recipe.augment != "standard") return augmentation;
  if (spec.annotations != data::Annotations::kLabels) {
    augmentation.random_resized_crop = true;
    augmentation.least_area = kLeastArea;
    augmentation.resize = 0;
    augmentation.stretch = false;
  } else if (augmentation.fit && !crop) {
    augmentation.pad_crop = augmentation.height / 8;
  } else {
    augmentation.random_resized_crop = true;
    augmentation.resize = 0;
  }
  return augmentation;
}

absl::Status CheckAnnotations(const Recipe& recipe, const ModelInputSpec& spec,
                              const Input& input) {
  for (const auto* images : {&input.train_images, &input.test_images}) {
    const data::Annotations given = (*images)->annotations();
    if (given == spec.annotations) continue;
    return absl::InvalidArgumentError(absl::StrCat(recipe.model, " is trained with ",
                                                   data::NameOf(spec.annotations), ", but ",
                                                   recipe.data, " has ", data::NameOf(given)));
  }
  return absl::OkStatus();
}

// The first class that the two do not share.
absl::Status CheckClasses(const Input& input) {
  const auto &train = input.train_images->classes(), &test = input.test_images->classes();
  if (train == test) return absl::OkStatus();
  size_t at = 0;
  while (at < train.size() && at < test.size() && train[at] == test[at]) ++at;
  const auto name = [at](const std::vector<std::string>& classes) {
    return at < classes.size() ? absl::StrCat("\"", classes[at], "\"") : std::string("none");
  };
  return absl::InvalidArgumentError(
      absl::StrCat("training and test images have different classes, ", train.size(), " and ",
                   test.size(), ": number ", at, " is ", name(train),
                   " of the training images and ", name(test), " of the test images"));
}

// Begun ones, which --max-steps may make fewer.
int64_t EpochsOf(const Recipe& recipe, int64_t images) {
  const int64_t steps = images / recipe.batch;  // of an epoch
  return (TotalSteps(recipe, steps) + steps - 1) / steps;
}

// Once, where all ranks open the same.
void WarnOfRemarks(const Recipe& recipe, const Input& input) {
  for (const auto& [split, images] :
       {std::pair("train", input.train_images.get()), std::pair("test", input.test_images.get())}) {
    for (const std::string& remark : images->Remarks()) {
      base::Warn(absl::StrCat(recipe.data, ", split ", split, ": ", remark));
    }
  }
}

absl::Status CheckSizes(const Recipe& recipe, const Input& input, const parallel::Layout& layout) {
  if (recipe.batch < layout.shares()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", recipe.batch, " is smaller than the number of ",
                     layout.stages() > 1 ? "replicas of the pipeline, " : "ranks, ",
                     layout.replicas(), ": raise --batch"));
  }
  if (input.train_images->size() < recipe.batch) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", recipe.batch, " is larger than the ",
                     input.train_images->size(), " training images: lower --batch"));
  }
  if (input.test_images->size() == 0) {
    return absl::InvalidArgumentError("there are no test images");
  }
  return CheckClasses(input);
}

}  // namespace

absl::StatusOr<Input> OpenInput(const Recipe& recipe, const ModelInputSpec& spec,
                                const parallel::Layout& layout, const data::BatchMemory& memory) {
  Input input;
  const data::OpenOptions open{
      .stream = {.cache = recipe.data_cache, .most_bytes = recipe.data_disk << 20}};
  TUTTI_ASSIGN_OR_RETURN(input.train_images, data::OpenDataset(recipe.data, "train", open));
  TUTTI_ASSIGN_OR_RETURN(input.test_images, data::OpenDataset(recipe.data, "test", open));
  if (layout.reports()) WarnOfRemarks(recipe, input);
  TUTTI_RETURN_IF_ERROR(CheckAnnotations(recipe, spec, input));
  TUTTI_RETURN_IF_ERROR(CheckSizes(recipe, input, layout));
  input.evaluation = EvaluationOf(recipe, spec);

  data::LoaderOptions options;
  options.global_batch = static_cast<int>(recipe.batch);
  options.rank = layout.share();
  options.world_size = layout.shares();
  options.on_demand = layout.takes_turns;
  options.seed = static_cast<uint64_t>(recipe.seed);
  options.threads = layout.trains() ? static_cast<int>(recipe.workers) : 0;
  options.mixed_parts = static_cast<int>(recipe.mixed_shards);
  options.memory = memory;
  // Stages that see labels alone would not know which image has taken a damaged one's place.
  options.max_unreadable = layout.stages() > 1 ? 0 : recipe.max_unreadable;
  options.labels_only = layout.trains() && !layout.reads_inputs();
  options.on_unreadable = [](absl::string_view what) {
    base::Warn(absl::StrCat("replaced by the next image: ", what));
  };
  if (layout.reports()) {
    // Once, whether training or test images come first.
    const absl::string_view which = recipe.augment == "crop" ? "test images" : "images";
    const absl::string_view advice =
        recipe.augment == "crop" ? "" : "; --augment crop trains on random crops instead";
    options.on_fitted = [told = std::make_shared<std::atomic<bool>>(), which,
                         advice](absl::string_view what) {
      if (told->exchange(true)) return;
      base::Warn(absl::StrCat(what, ": ", which,
                              " of another size are resized by their shorter side and cut to their "
                              "centre (docs/formats/data.md)",
                              advice));
    };
  }
  options.augmentation = TrainingOf(recipe, spec, input.evaluation);
  options.mixing = {recipe.mixup, recipe.cutmix};
  options.plain_from = EpochsOf(recipe, input.train_images->size()) - recipe.plain_epochs;
  if (recipe.precision == "bf16") options.pixels = data::PixelType::kBFloat16;
  TUTTI_ASSIGN_OR_RETURN(input.train, data::MakeLoader(input.train_images, options));

  options.on_demand = false;
  options.rank = std::max(layout.replica(), 0);  // a rank that serves takes none
  options.world_size = layout.replicas();
  options.global_batch = EvaluationBatch(spec) * layout.replicas();
  options.shuffle = false;
  options.drop_last = false;
  options.augmentation = input.evaluation;
  options.mixing = {};
  TUTTI_ASSIGN_OR_RETURN(input.test, data::MakeLoader(input.test_images, options));
  return input;
}

}  // namespace tutti::train
