#include "runtime/models/layers/synchronized_batch_norm.h"

#include <torch/autograd.h>

#include "runtime/models/layers/batch_norm.h"

namespace tutti::models {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Carries the callback from forward to backward in an IValue.
struct SumHolder : torch::CustomClassHolder {
  explicit SumHolder(SumOverRanks callback) : sum(std::move(callback)) {}
  SumOverRanks sum;
};

void SumOrThrow(const SumOverRanks& sum, Tensor& sums) {
  if (absl::Status status = sum(sums); !status.ok()) throw SumFailed(status);
}

// A per-channel vector, to be broadcast over [N, C, H, W].
Tensor PerChannel(const Tensor& vector) { return vector.view({1, -1, 1, 1}); }

// sum(x), sum(x^2) and the count, as one fp64 vector. The square of the mean is added and taken off
// again in fp64, where it costs no digits of an fp32 variance.
Tensor LocalSums(const Tensor& images, torch::Dtype type) {
  const int64_t channels = images.size(1);
  const double count = static_cast<double>(images.numel()) / static_cast<double>(channels);
  Tensor sums = torch::zeros(2 * channels + 1, images.options().dtype(torch::kFloat64));
  if (count == 0) return sums;
  // The running statistics that it wants are only there to choose the result's type.
  const Tensor unused = torch::zeros(channels, images.options().dtype(type));
  auto [mean, variance] = at::batch_norm_update_stats(images, unused, unused.clone(), 0.0);
  mean = mean.to(torch::kFloat64);
  sums.narrow(0, 0, channels).copy_(mean * count);
  sums.narrow(0, channels, channels).copy_((variance.to(torch::kFloat64) + mean * mean) * count);
  sums[-1] = count;
  return sums;
}

void UpdateRunning(Tensor running, const Tensor& batch) {
  running.lerp_(batch.to(running.scalar_type()), BatchNormImpl::kMomentum);
}

// libtorch's kernels divide by the size of their input, so that an empty one needs a way around.
Tensor Normalise(const Tensor& images, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                 const Tensor& variance, double epsilon) {
  if (images.numel() == 0) return torch::empty_like(images);
  return std::get<0>(at::native_batch_norm(images, weight, bias, mean, variance, /*training=*/false,
                                           0.0, epsilon));
}

// sum(dy x^) and sum(dy) of this rank: what the backward pass of batch-norm with given statistics
// returns as the gradients of weight and bias.
std::pair<Tensor, Tensor> LocalGradientSums(const Tensor& dy, const Tensor& images,
                                            const Tensor& weight, const Tensor& mean,
                                            const Tensor& variance, double epsilon) {
  if (images.numel() == 0) return {torch::zeros_like(weight), torch::zeros_like(weight)};
  auto [unused, dw, db] = at::native_batch_norm_backward(
      dy, images, weight, mean, variance, {}, {}, /*train=*/false, epsilon, {false, true, true});
  return {dw, db};
}

class Function : public torch::autograd::Function<Function> {
 public:
  static Tensor forward(AutogradContext* context, Tensor images, Tensor weight, Tensor bias,
                        Tensor running_mean, Tensor running_var, double epsilon,
                        const SumOverRanks& sum) {
    const int64_t channels = images.size(1);
    Tensor sums = LocalSums(images, weight.scalar_type());
    SumOrThrow(sum, sums);
    const double count = sums[-1].item<double>();
    const Tensor mean = sums.narrow(0, 0, channels) / count;
    const Tensor variance =
        (sums.narrow(0, channels, channels) / count - mean * mean).clamp_min_(0);
    UpdateRunning(running_mean, mean);
    UpdateRunning(running_var, variance * (count / std::max(count - 1, 1.0)));

    const Tensor m = mean.to(weight.scalar_type()), v = variance.to(weight.scalar_type());
    context->save_for_backward({images, weight, m, v});
    context->saved_data["count"] = count;
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["sum"] = c10::IValue::make_capsule(c10::make_intrusive<SumHolder>(sum));
    return Normalise(images, weight, bias, m, v, epsilon);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &images = saved[0], &weight = saved[1], &mean = saved[2], &variance = saved[3];
    const auto holder = context->saved_data["sum"].toCapsule();
    const Tensor dy = gradients[0].contiguous(images.suggest_memory_format());

    const double epsilon = context->saved_data["epsilon"].toDouble();
    auto [dw, db] = LocalGradientSums(dy, images, weight, mean, variance, epsilon);
    Tensor sums = torch::cat({dw, db}).to(torch::kFloat64);
    SumOrThrow(static_cast<SumHolder*>(holder.get())->sum, sums);
    sums /= context->saved_data["count"].toDouble();

    // dx = a dy + b x + c, one coefficient a channel each.
    const auto halves = sums.chunk(2);
    const Tensor inverse_deviation = (variance.to(torch::kFloat64) + epsilon).rsqrt();
    const Tensor a = weight * inverse_deviation;
    const Tensor b = -a * inverse_deviation * halves[0];
    const Tensor c = -a * halves[1] - b * mean;
    const auto as_input = [&](const Tensor& t) { return PerChannel(t.to(weight.scalar_type())); };
    const Tensor dx = (images * as_input(b)).add_(as_input(c)).addcmul_(dy, as_input(a));
    return {dx.to(images.scalar_type()), dw, db, Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

torch::Tensor SynchronizedBatchNorm(const torch::Tensor& images, const BatchNormTensors& tensors,
                                    const SumOverRanks& sum) {
  return Function::apply(images, tensors.weight, tensors.bias, tensors.running_mean,
                         tensors.running_var, tensors.epsilon, sum);
}

}  // namespace tutti::models
