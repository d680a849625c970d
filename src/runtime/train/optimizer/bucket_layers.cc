#include "runtime/train/optimizer/bucket_layers.h"

#include <limits>

namespace tutti::train {

Layers::Layers(const parallel::Bucket& bucket) : type_(bucket.gradients().scalar_type()) {
  for (const auto& slot : bucket.slots()) {
    const bool is_layer = IsWeight(slot);
    if (!ranges_.empty()) ranges_.back().end = slot.offset;
    if (is_layer || ranges_.empty() || ranges_.back().decays) {
      ranges_.push_back({slot.offset, 0, is_layer});
    }
  }
  ranges_.back().end = bucket.size();
  std::vector<int64_t> are_layers;
  for (const ParameterRange& range : ranges_) {
    sizes_.push_back(range.end - range.begin);
    are_layers.push_back(range.decays ? 1 : 0);
  }
  const torch::Device device = bucket.gradients().device();
  are_layers_ = torch::tensor(are_layers, torch::kBool).to(device);
}

torch::Tensor Layers::Norms(const torch::Tensor& flat) const {
  return torch::stack(torch::_foreach_norm(flat.split_with_sizes(sizes_), 2, torch::kFloat64));
}

torch::Tensor Layers::Ratios(const torch::Tensor& ratios, const torch::Tensor& values,
                             const torch::Tensor& updates) const {
  const torch::Tensor are_scaled = are_layers_ & values.gt(0) & updates.gt(0);
  return torch::where(are_scaled, ratios, torch::ones_like(ratios));
}

torch::Tensor Layers::Decays(double decay) const {
  return are_layers_.to(torch::kFloat64).mul_(decay);
}

torch::Tensor Layers::Spread(const torch::Tensor& each) {
  if (!range_of_.defined()) {
    const auto numbers = torch::arange(each.numel(), each.options().dtype(torch::kInt32));
    const auto repeats = torch::tensor(sizes_, torch::kInt64).to(each.device());
    range_of_ = torch::repeat_interleave(numbers, repeats, /*dim=*/0, ranges_.back().end);
  }
  // Not more than the type can hold: infinity times an element of 0 is none.
  const double most = type_ == torch::kFloat64
                          ? std::numeric_limits<double>::max()
                          : static_cast<double>(std::numeric_limits<float>::max());
  return each.clamp_max(most).to(type_).index_select(0, range_of_);
}

std::vector<Layers> LayersOf(const parallel::Buckets& buckets) {
  std::vector<Layers> layers;
  for (const auto& bucket : buckets) layers.emplace_back(*bucket);
  return layers;
}

std::vector<std::vector<ParameterRange>> ParameterRangesOf(const std::vector<Layers>& layers) {
  std::vector<std::vector<ParameterRange>> ranges;
  for (const Layers& each : layers) ranges.push_back(each.ranges());
  return ranges;
}

}  // namespace tutti::train
