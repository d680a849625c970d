#include "runtime/train/setup/batch_tensors.h"

namespace tutti::train {
namespace {

// from_blob takes no const; nobody writes to what a network is trained with.
template <typename T>
T* Writable(const T* memory) {
  return const_cast<T*>(memory);
}

}  // namespace

torch::Tensor ImagesOf(const data::Batch& batch, const data::Augmentation& augmentation,
                       bool bf16) {
  if (batch.pixels == nullptr) return {};
  return torch::from_blob(const_cast<void*>(batch.pixels),
                          {batch.count, augmentation.height, augmentation.width, 3},
                          bf16 ? torch::kBFloat16 : torch::kFloat32)
      .permute({0, 3, 1, 2});
}

torch::Tensor LabelsOf(const data::Batch& batch) {
  return torch::from_blob(Writable(batch.labels), {batch.count}, torch::kInt64);
}

torch::Tensor AnnotationsOf(const data::Batch& batch, const data::Augmentation& augmentation) {
  if (batch.masks != nullptr) {
    return torch::from_blob(Writable(batch.masks),
                            {batch.count, augmentation.height, augmentation.width}, torch::kUInt8)
        .to(torch::kInt64);
  }
  if (batch.boxes != nullptr) {
    return torch::from_blob(Writable(batch.boxes), {batch.count, batch.most_boxes, 5},
                            torch::kFloat32);
  }
  return LabelsOf(batch);
}

torch::Tensor MixedLabelsOf(const data::Batch& batch, int64_t classes) {
  torch::Tensor shares = torch::zeros({batch.count, classes});
  auto share = shares.accessor<float, 2>();
  for (int64_t i = 0; i < batch.count; ++i) {
    const int64_t partner = (i ^ 1) < batch.count ? i ^ 1 : i;
    share[i][batch.labels[i]] += batch.own_share;
    share[i][batch.labels[partner]] += 1 - batch.own_share;
  }
  return shares;
}

}  // namespace tutti::train
