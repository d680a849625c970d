#include "runtime/parallel/pipeline/layer_costs.h"

#include <ATen/Context.h>
#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/autograd.h>
#include <torch/cuda.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/device/autocast.h"
#include "runtime/parallel/lap.h"

namespace tutti::parallel {
namespace {

using models::Fork;
using models::Layer;

// Counts the bytes of tensors that this thread makes while it stands where libtorch has the
// profiler, less those that it frees again, and the most that they ever were. libtorch's allocators
// tell it of each.
class LiveBytes : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* block, int64_t bytes, size_t /*allocated*/, size_t /*reserved*/,
                         c10::Device /*device*/) override {
    const auto known = blocks_.find(block);
    if (known != blocks_.end()) {
      count_ -= known->second;
      blocks_.erase(known);
    }
    if (bytes <= 0) return;  // of one that was there before there is nothing to take away
    blocks_[block] = bytes;
    count_ += bytes;
    most_ = std::max(most_, count_);
  }
  bool memoryProfilingEnabled() const override { return true; }

  int64_t count() const { return count_; }
  int64_t most() const { return most_; }

 private:
  std::unordered_map<void*, int64_t> blocks_;
  int64_t count_ = 0, most_ = 0;
};

// Puts back what passes through layers change, when it goes.
class KeptState {
 public:
  explicit KeptState(torch::Device device)
      : generator_(at::globalContext().defaultGenerator(device)) {
    const std::lock_guard lock(generator_.mutex());
    random_ = generator_.get_state();
  }

  // Until then its gradients add up in other memory, as they do over the micro-batches of a step.
  void Keep(const Layer& layer) {
    for (const auto& [name, parameter] : layer.parameters) KeepGradient(parameter);
    for (const auto& [name, module] : layer.modules) {
      for (const torch::Tensor& parameter : module->parameters()) KeepGradient(parameter);
      for (const torch::Tensor& buffer : module->buffers()) {
        buffers_.emplace_back(buffer, buffer.detach().clone());
      }
    }
  }

  ~KeptState() {
    try {
      const torch::NoGradGuard no_grad;
      // What is in a layer twice was kept twice, and the first time as it was before.
      for (; !gradients_.empty(); gradients_.pop_back()) {
        gradients_.back().first.mutable_grad() = gradients_.back().second;
      }
      for (; !buffers_.empty(); buffers_.pop_back()) {
        buffers_.back().first.copy_(buffers_.back().second);
      }
      const std::lock_guard lock(generator_.mutex());
      generator_.set_state(random_);
    } catch (const c10::Error&) {
      // A device that cannot copy any more says so to whoever asks it next.
    }
  }

  KeptState(const KeptState&) = delete;
  KeptState& operator=(const KeptState&) = delete;

 private:
  void KeepGradient(torch::Tensor parameter) {
    if (!parameter.requires_grad()) return;
    gradients_.emplace_back(parameter, parameter.grad());
    parameter.mutable_grad() = torch::zeros_like(parameter.detach());
  }

  at::Generator generator_;
  torch::Tensor random_;
  std::vector<std::pair<torch::Tensor, torch::Tensor>> gradients_, buffers_;
};

int64_t BytesOf(const torch::Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }

// A layer's output may be one tensor under two names, or twice the same memory.
bool HasShortcut(const Fork& fork) {
  return fork.shortcut.defined() && !fork.shortcut.is_same(fork.main);
}

int64_t OutputBytes(const Fork& output) {
  const bool apart = HasShortcut(output) && !output.shortcut.is_alias_of(output.main);
  return BytesOf(output.main) + (apart ? BytesOf(output.shortcut) : 0);
}

// Returns the same values as the first of a graph of their own.
Fork LeafOf(const Fork& values, bool requires_grad) {
  const auto leaf = [&](const torch::Tensor& tensor) {
    return tensor.detach().set_requires_grad(requires_grad);
  };
  Fork leaves = {leaf(values.main), {}};
  if (values.shortcut.defined()) {
    leaves.shortcut = HasShortcut(values) ? leaf(values.shortcut) : leaves.main;
  }
  return leaves;
}

// The part of an output through which gradients come, and gradients for it.
struct Upstream {
  explicit Upstream(const Fork& output) {
    Add(output.main);
    if (HasShortcut(output)) Add(output.shortcut);
  }
  void Add(const torch::Tensor& tensor) {
    if (!tensor.requires_grad()) return;
    tensors.push_back(tensor);
    gradients.push_back(torch::randn_like(tensor.detach()));
  }
  std::vector<torch::Tensor> tensors, gradients;
};

// What else the machine does makes passes slower, and none faster.
double LeastOf(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

class LayerMeasurement {
 public:
  LayerMeasurement(const Layer& layer, bool bf16, torch::Device device)
      : layer_(layer), bf16_(bf16), device_(device) {
    cost_.name = layer.name;
    for (const auto& [name, parameter] : layer.parameters) Count(parameter);
    for (const auto& [name, module] : layer.modules) {
      for (const torch::Tensor& parameter : module->parameters()) Count(parameter);
      for (const torch::Tensor& buffer : module->buffers()) cost_.buffer_bytes += BytesOf(buffer);
    }
  }

  // One pass forward and one backward.
  void Pass(const Fork& input, bool first_layer) {
    const Fork leaves = LeafOf(input, !first_layer);
    const auto live = std::make_shared<LiveBytes>();
    Settle();
    LapTimer timer;
    const Fork output = Forward(leaves, live);
    Settle();
    forward_.push_back(timer.Lap());
    cost_.kept_bytes = live->count();
    cost_.output_bytes = OutputBytes(output);
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, live);
    const Upstream upstream(output);
    Settle();
    timer.Lap();
    const bool trains = !upstream.tensors.empty();
    if (trains) torch::autograd::backward(upstream.tensors, upstream.gradients);
    Settle();
    cost_.working_bytes = live->most() - cost_.kept_bytes;
    backward_.push_back(trains ? timer.Lap() : 0);
    output_ = LeafOf(output, false);
  }

  void Forget() {
    forward_.clear();
    backward_.clear();
  }

  // After a pass.
  const Fork& output() const { return output_; }
  LayerCost Cost() const {
    LayerCost cost = cost_;
    cost.forward = LeastOf(forward_);
    cost.backward = LeastOf(backward_);
    return cost;
  }

 private:
  void Count(const torch::Tensor& parameter) {
    (parameter.requires_grad() ? cost_.parameter_bytes : cost_.buffer_bytes) += BytesOf(parameter);
  }

  Fork Forward(const Fork& input, const std::shared_ptr<LiveBytes>& live) const {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, live);
    const device::Autocast autocast(bf16_, device_.type());
    return layer_.forward(input);
  }

  // A GPU works on while the CPU prepares what comes next.
  void Settle() const {
    if (device_.is_cuda()) torch::cuda::synchronize(device_.index());
  }

  const Layer& layer_;
  const bool bf16_;
  const torch::Device device_;
  LayerCost cost_;
  std::vector<double> forward_, backward_;
  Fork output_;
};

// Exceptions are libtorch's.
LayerCost MeasureLayer(const Layer& layer, bool bf16, int repetitions, bool first_layer,
                       Fork& activation) {
  LayerMeasurement measurement(layer, bf16, activation.main.device());
  LapTimer timer;
  measurement.Pass(activation, first_layer);
  // The first pass is slow by what it finds for the first time, which is little of so long a one.
  constexpr double kLong = 0.5;
  if (timer.Lap() < kLong) {
    measurement.Forget();
    for (int i = 0; i < repetitions; ++i) measurement.Pass(activation, first_layer);
  }
  activation = measurement.output();
  return measurement.Cost();
}

}  // namespace

absl::StatusOr<std::vector<LayerCost>> MeasureLayers(const std::vector<Layer>& layers,
                                                     const torch::Tensor& inputs, bool bf16,
                                                     int repetitions) {
  if (layers.empty()) return absl::InvalidArgumentError("there is no layer to measure");
  if (repetitions < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("layers are measured once or more, not ", repetitions, " times"));
  }
  const Layer* layer = layers.data();
  const auto cannot = [&](absl::string_view why) {
    return absl::InternalError(absl::StrCat("measure layer ", layer->name, ": ", why));
  };
  try {
    std::vector<LayerCost> costs;
    Fork activation = {inputs, inputs};
    for (; costs.size() < layers.size(); ++layer) {
      KeptState kept(inputs.device());  // of one layer at a time, for the sake of memory
      kept.Keep(*layer);
      costs.push_back(MeasureLayer(*layer, bf16, repetitions, costs.empty(), activation));
    }
    return costs;
  } catch (const c10::Error& error) {
    return cannot(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return cannot(error.what());
  }
}

}  // namespace tutti::parallel
