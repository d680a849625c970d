#include "runtime/models/layers/fused.h"

#include <ATen/record_function.h>
#include <torch/autograd.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include <optional>
#include <utility>

#include "runtime/device/device.h"

namespace tutti::models {
namespace {

using device::LayersOn;
using device::Normalised;
using device::NormalisedPair;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class BatchNormFunction : public torch::autograd::Function<BatchNormFunction> {
 public:
  // Twice the same output: see Fork. Weight and bias are parameters of their own for autograd.
  static variable_list forward(AutogradContext* context, Tensor x, std::optional<Tensor> residual,
                               Tensor weight, Tensor bias, bool relu,
                               const device::BatchNormTensors& norm) {
    const Normalised made =
        LayersOn(x.device())->BatchNormForward(x, residual.value_or(Tensor()), relu, norm);
    context->save_for_backward({x, weight, bias, norm.running_mean, norm.running_var, made.mean,
                                made.inverse_deviation, made.positive});
    context->saved_data["relu"] = relu;
    context->saved_data["residual"] = residual.has_value();
    context->set_materialize_grads(false);
    return {made.y, made.y.detach()};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    if (!gradients[0].defined()) std::swap(gradients[0], gradients[1]);
    if (!gradients[0].defined()) return variable_list(6);
    const auto saved = context->get_saved_variables();
    const device::BatchNormTensors norm = {saved[1], saved[2], saved[3], saved[4], Tensor()};
    const Normalised made = {Tensor(), saved[5], saved[6], saved[7]};
    const auto to = LayersOn(saved[0].device())
                        ->BatchNormBackward(saved[0], context->saved_data["residual"].toBool(),
                                            context->saved_data["relu"].toBool(), norm, made,
                                            gradients[0], gradients[1]);
    return {to.x, to.residual, to.weight, to.bias, Tensor(), Tensor()};
  }
};

class BatchNormPairFunction : public torch::autograd::Function<BatchNormPairFunction> {
 public:
  static variable_list forward(AutogradContext* context, Tensor x, Tensor weight, Tensor bias,
                               Tensor x2, Tensor weight2, Tensor bias2,
                               const device::BatchNormTensors& norm,
                               const device::BatchNormTensors& norm2) {
    const NormalisedPair made = LayersOn(x.device())->BatchNormPairForward(x, norm, x2, norm2);
    context->save_for_backward({x, weight, bias, norm.running_mean, norm.running_var,
                                made.first.mean, made.first.inverse_deviation, x2, weight2, bias2,
                                norm2.running_mean, norm2.running_var, made.mean2,
                                made.inverse_deviation2, made.first.positive});
    context->set_materialize_grads(false);
    return {made.first.y, made.first.y.detach()};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    if (!gradients[0].defined()) std::swap(gradients[0], gradients[1]);
    if (!gradients[0].defined()) return variable_list(8);
    const auto saved = context->get_saved_variables();
    const device::BatchNormTensors norm = {saved[1], saved[2], saved[3], saved[4], Tensor()};
    const device::BatchNormTensors norm2 = {saved[8], saved[9], saved[10], saved[11], Tensor()};
    const NormalisedPair made = {{Tensor(), saved[5], saved[6], saved[14]}, saved[12], saved[13]};
    const auto to = LayersOn(saved[0].device())
                        ->BatchNormPairBackward(saved[0], norm, saved[7], norm2, made, gradients[0],
                                                gradients[1]);
    return {to.x, to.weight, to.bias, to.x2, to.weight2, to.bias2, Tensor(), Tensor()};
  }
};

class MaxPoolFunction : public torch::autograd::Function<MaxPoolFunction> {
 public:
  static Tensor forward(AutogradContext* context, Tensor x) {
    const auto made = LayersOn(x.device())->MaxPoolForward(x);
    context->save_for_backward({made.taken});
    context->saved_data["size"] = x.sizes().vec();
    return made.y;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {LayersOn(gradients[0].device())
                ->MaxPoolBackward(gradients[0], context->get_saved_variables()[0],
                                  context->saved_data["size"].toIntVector())};
  }
};

// OverBlocks turns a square kernel over three channels, [N, 3, k, k], into one over blocks of 2x2
// pixels, [N, 16, b, b], where b is BlocksOver(k). The kernel begins where a block does, with a
// zero in front if its padding is odd.
int64_t BlocksOver(int64_t size, int64_t padding) { return (size + padding % 2 + 1) / 2; }
Tensor OverBlocks(const Tensor& weight, int64_t padding) {
  const int64_t size = weight.size(2), front = padding % 2, blocks = BlocksOver(size, padding);
  const int64_t back = 2 * blocks - size - front;
  return torch::constant_pad_nd(torch::constant_pad_nd(weight, {front, back, front, back})
                                    .view({-1, 3, blocks, 2, blocks, 2})
                                    .permute({0, 3, 5, 1, 2, 4})
                                    .reshape({-1, 12, blocks, blocks}),
                                {0, 0, 0, 0, 0, 4});
}

bool ReadsPairsOfPixels(const torch::nn::Conv2dImpl& layer) {
  const auto& o = layer.options;
  const auto* const padding = std::get_if<torch::ExpandingArray<2>>(&o.padding());
  const auto same = [](const torch::ExpandingArray<2>& pair, int64_t value) {
    return (*pair)[0] == value && (*pair)[1] == value;
  };
  return o.in_channels() == 3 && o.groups() == 1 && same(o.stride(), 2) && same(o.dilation(), 1) &&
         same(o.kernel_size(), (*o.kernel_size())[0]) && padding != nullptr &&
         same(*padding, (**padding)[0]) &&
         std::holds_alternative<torch::enumtype::kZeros>(o.padding_mode());
}

}  // namespace

bool CanFuse(const Tensor& x) {
  const device::Layers* const layers = LayersOn(x.device());
  // A trace has to be of libtorch's own operators.
  return layers != nullptr && !torch::jit::tracer::isTracing() && layers->Takes(x);
}

bool CanFusePair(const Tensor& x, const Tensor& x2) {
  return CanFuse(x) && CanFuse(x2) && x.sizes() == x2.sizes() && LayersOn(x.device())->TakesPairs();
}

Fork FusedBatchNorm(const Tensor& x, const Tensor& residual, bool relu,
                    const device::BatchNormTensors& norm) {
  const auto some = residual.defined() ? std::optional<Tensor>(residual) : std::nullopt;
  RECORD_USER_SCOPE("tutti::batch_norm");
  auto made = BatchNormFunction::apply(x, some, norm.weight, norm.bias, relu, norm);
  return {made[0], made[1]};
}

Fork FusedBatchNormPair(const Tensor& x, const device::BatchNormTensors& norm, const Tensor& x2,
                        const device::BatchNormTensors& norm2) {
  RECORD_USER_SCOPE("tutti::batch_norm_pair");
  const auto made = BatchNormPairFunction::apply(x, norm.weight, norm.bias, x2, norm2.weight,
                                                 norm2.bias, norm, norm2);
  return {made[0], made[1]};
}

Tensor FusedMaxPool(const Tensor& x) {
  if (!CanFuse(x) || !LayersOn(x.device())->Pools(x)) return PlainMaxPool(x, 1);
  RECORD_USER_SCOPE("tutti::max_pool");
  return MaxPoolFunction::apply(x);
}

Tensor Convolved(torch::nn::Conv2d& layer, const Tensor& x) {
  device::Layers* const layers = LayersOn(x.device());
  if (layers == nullptr || !ReadsPairsOfPixels(*layer)) return layer->forward(x);
  const int64_t size = layer->weight.size(2);
  const int64_t padding = (*std::get<torch::ExpandingArray<2>>(layer->options.padding()))[0];
  const int64_t before = (padding + 1) / 2;
  const auto reads = [&](int64_t pixels) {
    return (pixels + 2 * padding - size) / 2 + BlocksOver(size, padding);
  };
  const Tensor blocks = layers->SpaceToDepth(x, before, reads(x.size(2)), reads(x.size(3)));
  if (!blocks.defined()) return layer->forward(x);
  const Tensor weight = OverBlocks(layer->weight, padding);
  return torch::conv2d(blocks, weight.contiguous(torch::MemoryFormat::ChannelsLast), layer->bias);
}

// All of two numbers, the dilation too: of a list of one the exporter to ONNX makes a pool over one
// dimension.
Tensor PlainMaxPool(const Tensor& x, int64_t padding) {
  return torch::max_pool2d(x, {3, 3}, /*stride=*/{2, 2}, {padding, padding}, /*dilation=*/{1, 1});
}

}  // namespace tutti::models
