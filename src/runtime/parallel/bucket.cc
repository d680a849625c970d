#include "runtime/parallel/bucket.h"

#include "runtime/comm/shared_buffer.h"

namespace tutti::parallel {
namespace {

int64_t Padded(int64_t elements, int64_t element_size) {
  const int64_t unit = 64 / element_size;
  return (elements + unit - 1) / unit * unit;
}

std::vector<int64_t> DenseStrides(const torch::Tensor& parameter) {
  const auto format =
      parameter.dim() == 4 ? torch::MemoryFormat::ChannelsLast : torch::MemoryFormat::Contiguous;
  const auto options = torch::TensorOptions().device(torch::kMeta).memory_format(format);
  return torch::empty(parameter.sizes(), options).strides().vec();
}

}  // namespace

torch::Tensor OwnMemory(int64_t elements, torch::TensorOptions like) {
  return torch::zeros({elements}, like);
}

GradientMemory SharedWithNode(comm::Communicator& communicator) {
  return [&communicator](int64_t elements, torch::TensorOptions like) -> torch::Tensor {
    auto buffer =
        communicator.AllocateShared(static_cast<size_t>(elements) * like.dtype().itemsize());
    if (!buffer.ok()) return OwnMemory(elements, like);
    std::shared_ptr<comm::SharedBuffer> owner = *std::move(buffer);
    return torch::from_blob(
        owner->data(), {elements}, [owner](void*) {}, like);
  };
}

Bucket::Bucket(const std::vector<NamedParameter>& parameters, int64_t tail_elements,
               const GradientMemory& memory) {
  TORCH_CHECK(!parameters.empty(), "a bucket needs a parameter");
  int64_t size = 0;
  for (const NamedParameter& parameter : parameters) {
    slots_.push_back({parameter.name, parameter.tensor, size});
    size += Padded(parameter.tensor.numel(), parameter.tensor.element_size());
  }
  const auto like =
      torch::dtype(parameters[0].tensor.scalar_type()).device(parameters[0].tensor.device());
  values_ = torch::zeros({size}, like);
  reduced_ = memory(size + tail_elements, like);
  const torch::Tensor gradients = this->gradients();
  torch::NoGradGuard no_grad;
  for (Slot& slot : slots_) {
    TORCH_CHECK(slot.parameter.scalar_type() == values_.scalar_type(), slot.name,
                " is of another type than the bucket's first parameter");
    const auto strides = DenseStrides(slot.parameter);
    const auto sizes = slot.parameter.sizes().vec();
    torch::Tensor value = values_.as_strided(sizes, strides, slot.offset);
    value.copy_(slot.parameter);
    slot.parameter.set_data(value);
    slot.parameter.mutable_grad() = gradients.as_strided(sizes, strides, slot.offset);
  }
}

torch::Tensor Bucket::tail() const {
  return reduced_.narrow(0, values_.numel(), reduced_.numel() - values_.numel());
}

torch::Tensor Bucket::View(const torch::Tensor& flat, const Slot& slot) {
  return flat.as_strided(slot.parameter.sizes(), slot.parameter.strides(),
                         flat.storage_offset() + slot.offset);
}

std::vector<std::vector<size_t>> PlanBuckets(const std::vector<size_t>& bytes, size_t first_cap,
                                             size_t cap) {
  std::vector<std::vector<size_t>> buckets;
  size_t filled = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    const size_t limit = buckets.size() <= 1 ? first_cap : cap;
    if (buckets.empty() || filled + bytes[i] > limit) {
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().push_back(i);
    filled += bytes[i];
  }
  return buckets;
}

}  // namespace tutti::parallel
