// Makes tensors of a batch, with what is known of its images as tasks want it (tasks/task.h).
#pragma once

#include <torch/types.h>

#include "runtime/data/loader.h"

namespace tutti::train {

// Return views of a batch's memory, valid as long as it is: [count, 3, H, W] channels-last in fp32
// or bf16, and [count] int64.
torch::Tensor ImagesOf(const data::Batch& batch, const data::Augmentation& augmentation, bool bf16);
torch::Tensor LabelsOf(const data::Batch& batch);

// Returns labels; masks [count, H, W] int64; or boxes [count, most, 5] fp32: a view, save for
// masks.
torch::Tensor AnnotationsOf(const data::Batch& batch, const data::Augmentation& augmentation);

// Returns each image's shares of the classes, [count, classes] fp32, for a batch that is mixed or
// might have been.
torch::Tensor MixedLabelsOf(const data::Batch& batch, int64_t classes);

}  // namespace tutti::train
