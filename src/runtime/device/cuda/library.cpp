// libtutti_cuda.so: the kernels of this folder and graphs, on libtorch's tensors and streams.
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "runtime/device/kernels/cuda.h"
#include "runtime/device/cuda/adam_update.h"
#include "runtime/device/cuda/batch_norm_cuda.h"
#include "runtime/device/cuda/batch_norm_pair.h"
#include "runtime/device/cuda/gather_gradients.h"
#include "runtime/device/cuda/lars_update.h"
#include "runtime/device/cuda/max_pool_cuda.h"
#include "runtime/device/cuda/sgd_update.h"
#include "runtime/device/cuda/space_to_depth.h"

namespace tutti::device {
namespace {

using torch::Tensor;

cudaStream_t CurrentStream() { return c10::cuda::getCurrentCUDAStream().stream(); }

float* Floats(const Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }
uint8_t* Bytes(const Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<uint8_t>() : nullptr;
}
void* Data(const Tensor& tensor) { return tensor.defined() ? tensor.mutable_data_ptr() : nullptr; }

// The sizes of an activation; throws unless the kernels can take it.
Activations ShapeOf(const Tensor& x) {
  TORCH_CHECK(x.dim() == 4 && x.scalar_type() == torch::kBFloat16 && x.size(1) % 8 == 0 &&
                  x.is_contiguous(torch::MemoryFormat::ChannelsLast),
              "these kernels take channels-last bf16 with a multiple of 8 channels");
  return {x.size(0) * x.size(2) * x.size(3), static_cast<int>(x.size(1))};
}

Tensor ChannelsLast(const Tensor& gradient) {
  return gradient.defined() ? gradient.contiguous(torch::MemoryFormat::ChannelsLast) : gradient;
}

// `statistics` are written by forward and read by backward.
Normalisation PointersOf(const BatchNormTensors& norm, const Normalised& statistics) {
  return {.weight = Floats(norm.weight),
          .bias = Floats(norm.bias),
          .mean = Floats(statistics.mean),
          .inverse_deviation = Floats(statistics.inverse_deviation),
          .running_mean = Floats(norm.running_mean),
          .running_var = Floats(norm.running_var),
          .batches = norm.batches.defined() ? norm.batches.mutable_data_ptr<int64_t>() : nullptr,
          .momentum = static_cast<float>(norm.momentum),
          .epsilon = static_cast<float>(norm.epsilon)};
}

Pair PairOf(const Tensor& x, const BatchNormTensors& norm, const Tensor& x2,
            const BatchNormTensors& norm2, const NormalisedPair& statistics) {
  Normalised second;
  second.mean = statistics.mean2;
  second.inverse_deviation = statistics.inverse_deviation2;
  return {Data(x), Data(x2), PointersOf(norm, statistics.first), PointersOf(norm2, second)};
}

Tensor ScratchFor(const Activations& shape, const Tensor& like, int times = 1) {
  return torch::empty({times * ScratchFloats(shape)}, like.options().dtype(torch::kFloat32));
}

ChunkTable TableOf(const Chunks& chunks) {
  return {.begins = chunks.begins.const_data_ptr<int64_t>(),
          .ranges = chunks.ranges.const_data_ptr<int>(),
          .firsts = chunks.firsts.const_data_ptr<int>(),
          .decays = chunks.decays.const_data_ptr<float>(),
          .chunks = static_cast<int>(chunks.ranges.numel()),
          .count = static_cast<int>(chunks.decays.numel())};
}

Update PointersOf(const UpdateTensors& u) {
  return {.values = Floats(u.values),
          .gradients = Floats(u.gradients),
          .copy = Data(u.copy),
          .found_nonfinite = u.found_nonfinite.defined() ? Floats(u.found_nonfinite) : nullptr,
          .chunks = TableOf(u.chunks),
          .learning_rate = u.learning_rate,
          .weight_decay = u.weight_decay};
}

AdamStep StepOf(const AdamTensors& u) {
  return {PointersOf(u), Floats(u.first), Floats(u.second), u.beta1, u.beta2, u.epsilon, u.t};
}

// For norms.
Tensor ScratchFor(const UpdateTensors& u) {
  return torch::empty({ScratchDoubles(TableOf(u.chunks))},
                      u.values.options().dtype(torch::kFloat64));
}

class RecordedGraph final : public Graph {
 public:
  explicit RecordedGraph(const std::function<void()>& work) {
    const auto side = c10::cuda::getStreamFromPool();
    const c10::cuda::CUDAStreamGuard guard(side);
    // Other threads may use CUDA meanwhile: the loader's, say.
    graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (const c10::OutOfMemoryError&) {
      Abandon();
      throw;
    } catch (const std::exception& error) {  // TorchScript has its own
      Abandon();
      const auto* const known = dynamic_cast<const c10::Error*>(&error);
      TORCH_CHECK(false, "the step of this model cannot be recorded as a CUDA graph (",
                  known != nullptr ? known->what_without_backtrace() : error.what(),
                  "); with TUTTI_CUDA_KERNELS= in the environment it is trained without");
    }
    graph_.capture_end();
  }
  void Replay() override { graph_.replay(); }

 private:
  // The stream is to be of use for others again; that nothing came of it is known.
  void Abandon() noexcept {
    try {
      graph_.capture_end();
    } catch (const std::exception&) {
    }
  }

  at::cuda::CUDAGraph graph_;
};

class Library final : public Cuda {
 public:
  std::unique_ptr<Graph> Record(const std::function<void()>& work) override {
    C10_CUDA_CHECK(cudaStreamSynchronize(CurrentStream()));
    // What earlier runs left cached cannot be given to the graph, nor be released while it records.
    c10::cuda::CUDACachingAllocator::emptyCache();
    return std::make_unique<RecordedGraph>(work);
  }

  bool Takes(const Tensor& x) const override {
    return x.is_cuda() && x.dim() == 4 && x.numel() > 0 && x.scalar_type() == torch::kBFloat16 &&
           x.size(1) % 8 == 0 && x.size(1) <= 8192 &&
           x.is_contiguous(torch::MemoryFormat::ChannelsLast);
  }

  Normalised BatchNormForward(const Tensor& x, const Tensor& residual, bool relu,
                              const BatchNormTensors& norm) override {
    const Activations shape = ShapeOf(x);
    Normalised to;
    to.y = torch::empty_like(x);
    to.mean = torch::empty_like(norm.weight);
    to.inverse_deviation = torch::empty_like(norm.weight);
    if (residual.defined() && relu) {
      to.positive = torch::empty({x.numel() / 8}, x.options().dtype(torch::kUInt8));
    }
    const Tensor add = ChannelsLast(residual), scratch = ScratchFor(shape, x);
    C10_CUDA_CHECK(tutti::device::BatchNormForward(shape, Data(x), Data(add), Data(to.y),
                                                   Bytes(to.positive), relu, PointersOf(norm, to),
                                                   Floats(scratch), CurrentStream()));
    return to;
  }

  NormalisedGradients BatchNormBackward(const Tensor& x, bool had_residual, bool relu,
                                        const BatchNormTensors& norm, const Normalised& forward,
                                        const Tensor& dy, const Tensor& dy2) override {
    const Activations shape = ShapeOf(x);
    const Tensor first = ChannelsLast(dy), second = ChannelsLast(dy2);
    NormalisedGradients to;
    to.x = torch::empty_like(x);
    to.weight = torch::empty_like(norm.weight);
    to.bias = torch::empty_like(norm.bias);
    const Tensor masked = had_residual || dy2.defined() ? torch::empty_like(x) : Tensor();
    const Tensor scratch = ScratchFor(shape, x);
    C10_CUDA_CHECK(tutti::device::BatchNormBackward(shape, Data(x), relu, PointersOf(norm, forward),
                                                    {.dy = Data(first),
                                                     .dy2 = Data(second),
                                                     .positive = Bytes(forward.positive),
                                                     .masked = Data(masked),
                                                     .dx = Data(to.x),
                                                     .weight = Floats(to.weight),
                                                     .bias = Floats(to.bias)},
                                                    Floats(scratch), CurrentStream()));
    if (had_residual) to.residual = masked;
    return to;
  }

  bool TakesPairs() const override { return true; }

  NormalisedPair BatchNormPairForward(const Tensor& x, const BatchNormTensors& norm,
                                      const Tensor& x2, const BatchNormTensors& norm2) override {
    const Activations shape = ShapeOf(x);
    NormalisedPair to;
    to.first.y = torch::empty_like(x);
    to.first.positive = torch::empty({x.numel() / 8}, x.options().dtype(torch::kUInt8));
    to.first.mean = torch::empty_like(norm.weight);
    to.first.inverse_deviation = torch::empty_like(norm.weight);
    to.mean2 = torch::empty_like(norm2.weight);
    to.inverse_deviation2 = torch::empty_like(norm2.weight);
    const Tensor scratch = ScratchFor(shape, x, 2);
    C10_CUDA_CHECK(PairForward(shape, PairOf(x, norm, x2, norm2, to), Data(to.first.y),
                               Bytes(to.first.positive), Floats(scratch), CurrentStream()));
    return to;
  }

  NormalisedPairGradients BatchNormPairBackward(const Tensor& x, const BatchNormTensors& norm,
                                                const Tensor& x2, const BatchNormTensors& norm2,
                                                const NormalisedPair& forward, const Tensor& dy,
                                                const Tensor& dy2) override {
    const Activations shape = ShapeOf(x);
    const Tensor first = ChannelsLast(dy), second = ChannelsLast(dy2);
    const Tensor masked = torch::empty_like(x);
    const NormalisedPairGradients to = {.x = torch::empty_like(x),
                                        .weight = torch::empty_like(norm.weight),
                                        .bias = torch::empty_like(norm.bias),
                                        .x2 = torch::empty_like(x2),
                                        .weight2 = torch::empty_like(norm2.weight),
                                        .bias2 = torch::empty_like(norm2.bias)};
    const Tensor scratch = ScratchFor(shape, x, 2);
    C10_CUDA_CHECK(PairBackward(shape, PairOf(x, norm, x2, norm2, forward),
                                {.dy = Data(first),
                                 .dy2 = Data(second),
                                 .positive = Bytes(forward.first.positive),
                                 .masked = Data(masked),
                                 .dx = Data(to.x),
                                 .dx2 = Data(to.x2),
                                 .weight = Floats(to.weight),
                                 .bias = Floats(to.bias),
                                 .weight2 = Floats(to.weight2),
                                 .bias2 = Floats(to.bias2)},
                                Floats(scratch), CurrentStream()));
    return to;
  }

  Pooled MaxPoolForward(const Tensor& x) override {
    ShapeOf(x);
    const Pooling shape = PoolingOf(x.sizes());
    Pooled to;
    to.y = torch::empty({x.size(0), x.size(1), shape.out_height(), shape.out_width()}, x.options(),
                        torch::MemoryFormat::ChannelsLast);
    to.taken = torch::empty_like(to.y, torch::kUInt8);
    C10_CUDA_CHECK(tutti::device::MaxPoolForward(shape, Data(x), Data(to.y), Bytes(to.taken),
                                                 CurrentStream()));
    return to;
  }

  Tensor MaxPoolBackward(const Tensor& dy, const Tensor& taken,
                         torch::IntArrayRef input_size) override {
    const Tensor from = ChannelsLast(dy);
    Tensor dx = torch::empty(input_size, dy.options(), torch::MemoryFormat::ChannelsLast);
    C10_CUDA_CHECK(tutti::device::MaxPoolBackward(PoolingOf(input_size), Data(from), Bytes(taken),
                                                  Data(dx), CurrentStream()));
    return dx;
  }

  Tensor SpaceToDepth(const Tensor& images, int64_t before, int64_t height,
                      int64_t width) override {
    const bool takes = images.is_cuda() && images.dim() == 4 && images.numel() > 0 &&
                       images.size(1) == 3 && images.scalar_type() == torch::kBFloat16 &&
                       images.is_contiguous(torch::MemoryFormat::ChannelsLast);
    if (!takes || images.requires_grad()) return {};
    Tensor blocks = torch::empty({images.size(0), 16, height, width}, images.options(),
                                 torch::MemoryFormat::ChannelsLast);
    C10_CUDA_CHECK(tutti::device::SpaceToDepth({.images = static_cast<int>(images.size(0)),
                                                .height = static_cast<int>(images.size(2)),
                                                .width = static_cast<int>(images.size(3)),
                                                .before = static_cast<int>(before),
                                                .out_height = static_cast<int>(height),
                                                .out_width = static_cast<int>(width)},
                                               Data(images), Data(blocks), CurrentStream()));
    return blocks;
  }

  void Gather(const std::vector<Tensor>& from, const std::vector<Tensor>& to,
              const Tensor& not_finite) override {
    std::vector<Piece> pieces;
    for (size_t i = 0; i < from.size(); ++i) {
      TORCH_CHECK(from[i].numel() == to[i].numel() && from[i].is_non_overlapping_and_dense(),
                  "gradient ", i, " does not fit its place");
      pieces.push_back({Data(from[i]), Floats(to[i]), static_cast<int>(from[i].numel()),
                        from[i].scalar_type() == torch::kBFloat16});
    }
    C10_CUDA_CHECK(tutti::device::Gather(pieces.data(), static_cast<int>(pieces.size()),
                                         Floats(not_finite), CurrentStream()));
  }

  void Sgd(const SgdTensors& u) override {
    C10_CUDA_CHECK(tutti::device::SgdUpdate(
        {PointersOf(u), Floats(u.velocities), u.momentum, u.nesterov}, CurrentStream()));
  }

  void Lars(const LarsTensors& u) override {
    const Tensor scratch = ScratchFor(u);
    C10_CUDA_CHECK(
        tutti::device::LarsUpdate({PointersOf(u), Floats(u.velocities), u.momentum, u.trust},
                                  scratch.mutable_data_ptr<double>(), CurrentStream()));
  }

  void AdamW(const AdamTensors& u) override {
    C10_CUDA_CHECK(AdamWUpdate(StepOf(u), CurrentStream()));
  }

  void Lamb(const AdamTensors& u) override {
    const Tensor scratch = ScratchFor(u);
    C10_CUDA_CHECK(LambUpdate(StepOf(u), scratch.mutable_data_ptr<double>(), CurrentStream()));
  }

 private:
  static Pooling PoolingOf(torch::IntArrayRef size) {
    return {static_cast<int>(size[0]), static_cast<int>(size[2]), static_cast<int>(size[3]),
            static_cast<int>(size[1])};
  }
};

}  // namespace
}  // namespace tutti::device

extern "C" __attribute__((visibility("default"))) tutti::device::Cuda* tutti_cuda() {
  static auto* const library = new tutti::device::Library();
  return library;
}
