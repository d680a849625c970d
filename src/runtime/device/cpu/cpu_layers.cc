#include "runtime/device/cpu/cpu_layers.h"

#include <ATen/Parallel.h>

#include "runtime/device/cpu/batch_norm/batch_norm_cpu.h"
#include "runtime/device/cpu/max_pool/max_pool_cpu.h"

namespace tutti::device {
namespace {

using torch::Tensor;

template <cpu::Element T>
T* Values(const Tensor& tensor) {
  return tensor.defined() ? static_cast<T*>(tensor.mutable_data_ptr()) : nullptr;
}
// `body`, called with a value of the type that kernels know x's elements by.
template <typename Body>
void WithElementOf(const Tensor& x, const Body& body) {
  if (x.scalar_type() == torch::kFloat32) {
    body(float());
  } else {
    body(uint16_t());  // bf16
  }
}
float* FloatsOf(const Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }

cpu::Activations ActivationsOf(const Tensor& x) {
  return {x.size(0) * x.size(2) * x.size(3), x.size(1)};
}

cpu::Pooling PoolingOf(torch::IntArrayRef size) { return {size[0], size[2], size[3], size[1]}; }

// Returns `other` in the type and the layout of x; undefined if it is undefined.
Tensor Like(const Tensor& x, const Tensor& other) {
  if (!other.defined()) return other;
  return other.to(x.scalar_type()).contiguous(torch::MemoryFormat::ChannelsLast);
}

cpu::Normalisation NormalisationOf(const BatchNormTensors& norm, const Normalised& statistics) {
  return {.weight = FloatsOf(norm.weight),
          .bias = FloatsOf(norm.bias),
          .mean = FloatsOf(statistics.mean),
          .inverse_deviation = FloatsOf(statistics.inverse_deviation),
          .running_mean = FloatsOf(norm.running_mean),
          .running_var = FloatsOf(norm.running_var),
          .momentum = static_cast<float>(norm.momentum),
          .epsilon = static_cast<float>(norm.epsilon)};
}

class OnCpu final : public Layers {
 public:
  bool Takes(const Tensor& x) const override {
    return x.is_cpu() && x.dim() == 4 && x.numel() > 0 &&
           (x.scalar_type() == torch::kFloat32 || x.scalar_type() == torch::kBFloat16) &&
           x.is_contiguous(torch::MemoryFormat::ChannelsLast) && cpu::Takes(ActivationsOf(x));
  }
  bool Pools(const Tensor& x) const override { return Takes(x) && x.size(1) % 32 == 0; }

  Normalised BatchNormForward(const Tensor& x, const Tensor& residual, bool relu,
                              const BatchNormTensors& norm) override {
    Normalised to;
    to.y = torch::empty_like(x);
    to.mean = torch::empty_like(norm.weight);
    to.inverse_deviation = torch::empty_like(norm.weight);
    const Tensor add = Like(x, residual);
    WithElementOf(x, [&]<cpu::Element T>(T) {
      cpu::BatchNormForward<T>(ActivationsOf(x), Values<T>(x), Values<T>(add), Values<T>(to.y),
                               relu, NormalisationOf(norm, to), at::get_num_threads());
    });
    if (norm.batches.defined()) ++*norm.batches.mutable_data_ptr<int64_t>();
    if (residual.defined() && relu) to.positive = to.y;
    return to;
  }

  NormalisedGradients BatchNormBackward(const Tensor& x, bool had_residual, bool relu,
                                        const BatchNormTensors& norm, const Normalised& forward,
                                        const Tensor& dy, const Tensor& dy2) override {
    const Tensor first = Like(x, dy), second = Like(x, dy2);
    NormalisedGradients to;
    to.x = torch::empty_like(x);
    to.weight = torch::empty_like(norm.weight);
    to.bias = torch::empty_like(norm.bias);
    const Tensor masked = had_residual || dy2.defined() ? torch::empty_like(x) : Tensor();
    WithElementOf(x, [&]<cpu::Element T>(T) {
      cpu::BatchNormBackward<T>(ActivationsOf(x), Values<T>(x), relu,
                                NormalisationOf(norm, forward),
                                {.dy = Values<T>(first),
                                 .dy2 = Values<T>(second),
                                 .y = Values<T>(forward.positive),
                                 .masked = Values<T>(masked),
                                 .dx = Values<T>(to.x),
                                 .weight = FloatsOf(to.weight),
                                 .bias = FloatsOf(to.bias)},
                                at::get_num_threads());
    });
    if (had_residual) to.residual = masked;
    return to;
  }

  Pooled MaxPoolForward(const Tensor& x) override {
    const cpu::Pooling shape = PoolingOf(x.sizes());
    Pooled to;
    to.y = torch::empty({x.size(0), x.size(1), shape.out_height(), shape.out_width()}, x.options(),
                        torch::MemoryFormat::ChannelsLast);
    to.taken = torch::empty_like(to.y, torch::kUInt8);
    WithElementOf(x, [&]<cpu::Element T>(T) {
      cpu::MaxPoolForward<T>(shape, Values<T>(x), Values<T>(to.y),
                             to.taken.mutable_data_ptr<uint8_t>(), at::get_num_threads());
    });
    return to;
  }

  Tensor MaxPoolBackward(const Tensor& dy, const Tensor& taken,
                         torch::IntArrayRef input_size) override {
    const Tensor from = Like(dy, dy);
    Tensor dx = torch::empty(input_size, dy.options(), torch::MemoryFormat::ChannelsLast);
    WithElementOf(dy, [&]<cpu::Element T>(T) {
      cpu::MaxPoolBackward<T>(PoolingOf(input_size), Values<T>(from),
                              taken.mutable_data_ptr<uint8_t>(), Values<T>(dx),
                              at::get_num_threads());
    });
    return dx;
  }
};

}  // namespace

Layers& CpuLayers() {
  static OnCpu layers;
  return layers;
}

}  // namespace tutti::device
