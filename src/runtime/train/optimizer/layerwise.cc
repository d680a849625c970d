#include "runtime/train/optimizer/layerwise.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <limits>
#include <utility>

#include "runtime/train/optimizer/on_gpu.h"

namespace tutti::train {

Layers::Layers(const parallel::Bucket& bucket) : type_(bucket.gradients().scalar_type()) {
  for (const auto& slot : bucket.slots()) {
    const bool is_layer = slot.parameter.dim() > 1;
    if (!stretches_.empty()) stretches_.back().end = slot.offset;
    if (is_layer || stretches_.empty() || stretches_.back().decays) {
      stretches_.push_back({slot.offset, 0, is_layer});
    }
  }
  stretches_.back().end = bucket.size();
  std::vector<int64_t> are_layers;
  for (const Stretch& stretch : stretches_) {
    sizes_.push_back(stretch.end - stretch.begin);
    are_layers.push_back(stretch.decays ? 1 : 0);
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
  if (!stretch_of_.defined()) {
    const auto numbers = torch::arange(each.numel(), each.options().dtype(torch::kInt32));
    const auto repeats = torch::tensor(sizes_, torch::kInt64).to(each.device());
    stretch_of_ = torch::repeat_interleave(numbers, repeats, /*dim=*/0, stretches_.back().end);
  }
  // Not more than the type can hold: infinity times an element of 0 is none.
  const double most = type_ == torch::kFloat64
                          ? std::numeric_limits<double>::max()
                          : static_cast<double>(std::numeric_limits<float>::max());
  return each.clamp_max(most).to(type_).index_select(0, stretch_of_);
}

namespace {

std::vector<Layers> LayersOf(const Optimizer::Buckets& buckets) {
  std::vector<Layers> layers;
  for (const auto& bucket : buckets) layers.emplace_back(*bucket);
  return layers;
}

std::vector<std::vector<Stretch>> StretchesOf(const std::vector<Layers>& layers) {
  std::vector<std::vector<Stretch>> stretches;
  for (const Layers& each : layers) stretches.push_back(each.stretches());
  return stretches;
}

}  // namespace

Lars::Lars(const Buckets& buckets, const LarsCoefficients& coefficients)
    : buckets_(buckets),
      coefficients_(coefficients),
      layers_(LayersOf(buckets)),
      gpu_(std::make_unique<OnGpu>(buckets, StretchesOf(layers_))) {
  for (const auto& bucket : buckets_) velocities_.push_back(torch::zeros_like(bucket->values()));
}

Lars::~Lars() = default;

template <typename T>
void Lars::StepOnCpu(size_t i) {
  const LarsCoefficients& c = coefficients_;
  const int threads = at::get_num_threads();
  for (const Stretch& stretch : layers_[i].stretches()) {
    T* const values = buckets_[i]->values().mutable_data_ptr<T>() + stretch.begin;
    T* const velocities = velocities_[i].mutable_data_ptr<T>() + stretch.begin;
    const torch::Tensor flat = buckets_[i]->gradients();
    const T* const gradients = flat.const_data_ptr<T>() + stretch.begin;
    const auto count = static_cast<size_t>(stretch.end - stretch.begin);
    if (stretch.decays) {
      LarsUpdate(values, velocities, gradients, count, c, threads);
    } else {
      SgdUpdate(values, velocities, gradients, count,
                {.learning_rate = c.learning_rate, .momentum = c.momentum}, threads);
    }
  }
}

// Nothing where the device has found a gradient that is not finite.
void Lars::StepByLibtorch(size_t i) {
  const LarsCoefficients& c = coefficients_;
  Layers& layers = layers_[i];
  parallel::Bucket& bucket = *buckets_[i];
  const torch::Tensor wanted = bucket.found_nonfinite.eq(0);
  const torch::Tensor value = layers.Norms(bucket.values());
  const torch::Tensor gradient = layers.Norms(bucket.gradients());
  const torch::Tensor ratios =
      layers.Ratios(c.trust * value / (gradient + c.weight_decay * value), value, gradient);
  const torch::Tensor decayed =
      bucket.gradients() + layers.Spread(layers.Decays(c.weight_decay)) * bucket.values();
  const torch::Tensor next =
      velocities_[i].mul(c.momentum).addcmul_(layers.Spread(ratios), decayed);
  const torch::Tensor values = bucket.values().sub(next, /*alpha=*/c.learning_rate);
  velocities_[i].copy_(torch::where(wanted, next, velocities_[i]));
  bucket.values().copy_(torch::where(wanted, values, bucket.values()));
  if (bucket.copy.defined()) bucket.copy.copy_(bucket.values());
}

void Lars::Step(double learning_rate) {
  torch::NoGradGuard no_grad;
  coefficients_.learning_rate = learning_rate;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (gpu_->kernels() != nullptr) {
      const LarsCoefficients& c = coefficients_;
      gpu_->kernels()->Lars(
          {gpu_->TensorsOf(i, learning_rate, c.weight_decay), velocities_[i], c.momentum, c.trust});
    } else if (buckets_[i]->found_nonfinite.defined()) {
      StepByLibtorch(i);
    } else if (velocities_[i].scalar_type() == torch::kFloat64) {
      StepOnCpu<double>(i);
    } else {
      StepOnCpu<float>(i);
    }
  }
}

std::map<std::string, torch::Tensor> Lars::State() {
  std::map<std::string, torch::Tensor> state;
  AddByName("momentum.", buckets_, velocities_, state);
  return state;
}

Lamb::Lamb(const Buckets& buckets, const AdamCoefficients& coefficients)
    : Lamb(buckets, coefficients, LayersOf(buckets)) {}

Lamb::Lamb(const Buckets& buckets, const AdamCoefficients& coefficients, std::vector<Layers> layers)
    : WithMoments(buckets, coefficients, StretchesOf(layers)), layers_(std::move(layers)) {}

template <typename T>
void Lamb::Update(size_t i, int64_t t) {
  const int threads = at::get_num_threads();
  for (const Stretch& stretch : stretches(i)) {
    AdamCoefficients c = coefficients();
    const Memory<T> m = MemoryOf<T>(i, stretch.begin);
    const auto count = static_cast<size_t>(stretch.end - stretch.begin);
    if (stretch.decays) {
      LambUpdate(m.values, m.first, m.second, m.gradients, count, c, t, threads);
    } else {
      c.weight_decay = 0;
      AdamUpdate(m.values, m.first, m.second, m.gradients, count, c, t, threads);
    }
  }
}

torch::Tensor Lamb::Updated(size_t i, const torch::Tensor& first, const torch::Tensor& size,
                            int64_t t) {
  const AdamCoefficients& c = coefficients();
  Layers& layers = layers_[i];
  const torch::Tensor& old = bucket(i).values();
  const torch::Tensor update = layers.Spread(layers.Decays(c.weight_decay))
                                   .mul_(old)
                                   .addcdiv_(first, size, /*value=*/1 / (1 - std::pow(c.beta1, t)));
  const torch::Tensor value = layers.Norms(old), length = layers.Norms(update);
  const torch::Tensor ratios = layers.Ratios(value / length, value, length);
  return old.addcmul(layers.Spread(ratios), update, /*value=*/-c.learning_rate);
}

}  // namespace tutti::train
