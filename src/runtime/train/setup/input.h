// Opens the images that a recipe names, as loaders for one rank. No torch here.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/data/loader.h"
#include "runtime/parallel/layout.h"
#include "runtime/train/recipe/recipe.h"

namespace tutti::train {

struct Input {
  std::shared_ptr<const data::Dataset> train_images, test_images;
  std::unique_ptr<data::Loader> train, test;
  data::Augmentation evaluation;  // how an image becomes an input of the finished model
};

// What a model takes.
struct ModelInputSpec {
  int64_t size = 32;  // pixels a side
  data::Annotations annotations = data::Annotations::kLabels;
};

// Opens the splits "train" and "test" of the recipe's data (data::OpenDataset). InvalidArgument:
// they have other annotations; the batch does not fit the ranks or the images; the classes of the
// two splits differ. Batches lie in `memory`.
absl::StatusOr<Input> OpenInput(const Recipe& recipe, const ModelInputSpec& spec,
                                const parallel::Layout& layout = {},
                                const data::BatchMemory& memory = nullptr);

}  // namespace tutti::train
