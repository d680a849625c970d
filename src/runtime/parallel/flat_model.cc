#include "runtime/parallel/flat_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tutti::parallel {
namespace {

torch::Dtype TypeOf(const models::Model& model) { return model->parameters()[0].scalar_type(); }

std::vector<torch::Tensor> FloatingBuffers(const models::Model& model) {
  std::vector<torch::Tensor> floating;
  for (const torch::Tensor& buffer : model->buffers()) {
    if (buffer.scalar_type() == TypeOf(model)) floating.push_back(buffer);
  }
  return floating;
}

}  // namespace

torch::Tensor FlattenBuffers(const models::Model& model) {
  torch::NoGradGuard no_grad;
  int64_t size = 0;
  for (const torch::Tensor& buffer : FloatingBuffers(model)) size += buffer.numel();
  torch::Tensor flat = torch::zeros({size}, model->parameters()[0].options().requires_grad(false));
  int64_t offset = 0;
  for (torch::Tensor& buffer : FloatingBuffers(model)) {
    torch::Tensor view = flat.narrow(0, offset, buffer.numel()).view(buffer.sizes());
    view.copy_(buffer);
    buffer.set_data(view);
    offset += buffer.numel();
  }
  return flat;
}

namespace {

BucketCaps CapsBelow(size_t bytes) { return {std::min(bytes, size_t{1} << 20), bytes}; }

}  // namespace

BucketCaps UsualBucketCaps(size_t model_bytes) {
  return CapsBelow(std::clamp<size_t>(model_bytes / 8, size_t{64} << 10, size_t{25} << 20));
}

std::vector<std::unique_ptr<Bucket>> FlattenParameters(const models::Model& model,
                                                       size_t bucket_bytes, int64_t tail_elements,
                                                       const GradientMemory& memory) {
  std::vector<NamedParameter> parameters;
  std::vector<size_t> bytes;
  size_t total = 0;
  for (const auto& entry : model->named_parameters()) {
    if (!entry.value().requires_grad()) continue;
    parameters.push_back({entry.key(), entry.value()});
    bytes.push_back(entry.value().nbytes());
    total += bytes.back();
  }
  const BucketCaps caps = bucket_bytes == 0 ? UsualBucketCaps(total) : CapsBelow(bucket_bytes);
  std::vector<std::unique_ptr<Bucket>> buckets;
  for (const auto& members : PlanBuckets(bytes, caps.first, caps.others)) {
    std::vector<NamedParameter> chosen;
    for (size_t i : members) chosen.push_back(parameters[i]);
    buckets.push_back(
        std::make_unique<Bucket>(chosen, buckets.empty() ? tail_elements : 0, memory));
  }
  return buckets;
}

void AddByName(const std::string& prefix, const Buckets& buckets,
               const std::vector<torch::Tensor>& flat, State& state) {
  for (size_t i = 0; i < buckets.size(); ++i) {
    for (const Bucket::Slot& slot : buckets[i]->slots()) {
      state.push_back({.name = prefix + slot.name,
                       .tensor = Bucket::View(flat[i], slot),
                       .part = StateTensor::Part::kRun});
    }
  }
}

std::string FirstNotFinite(const std::vector<std::unique_ptr<Bucket>>& buckets) {
  torch::NoGradGuard no_grad;
  for (const auto& bucket : buckets) {
    // An infinity or NaN always shows in the sum; the sum of finite numbers may overflow.
    if (bucket->gradients().sum().isfinite().item<bool>()) continue;
    for (const Bucket::Slot& slot : bucket->slots()) {
      if (!slot.parameter.grad().isfinite().all().item<bool>()) return slot.name;
    }
  }
  return "";
}

absl::Status NotFinite(const std::string& parameter) {
  return absl::OutOfRangeError(
      absl::StrCat("the gradient of ", parameter, " is not finite, though the loss is"));
}

torch::Tensor SquaredNorms(const models::ModelImpl& model) {
  torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> gradients;
  for (const torch::Tensor& parameter : model.parameters()) {
    if (parameter.requires_grad()) gradients.push_back(parameter.grad());
  }
  return torch::stack(torch::_foreach_norm(gradients, 2, torch::kFloat64)).square_();
}

// On a GPU the scale stays there, and is 1 where nothing is clipped.
void ScaleToNorm(const std::vector<std::unique_ptr<Bucket>>& buckets, const torch::Tensor& squares,
                 double most) {
  constexpr double kAvoidsDivisionByZero = 1e-6;
  torch::NoGradGuard no_grad;
  const torch::Tensor norm = squares.sum().sqrt_().add_(kAvoidsDivisionByZero);
  const torch::Tensor scale = norm.reciprocal_().mul_(most).clamp_max_(1);
  if (scale.is_cpu() && scale.item<double>() == 1) return;
  for (const auto& bucket : buckets) {
    bucket->gradients().mul_(scale.to(bucket->gradients().scalar_type()));
  }
}

}  // namespace tutti::parallel
