#include "runtime/comm/negotiation/coordination/fuse.h"

#include <algorithm>
#include <utility>

namespace tutti::comm {
namespace {

constexpr size_t kMostMessageBytes = 256 << 10;  // a batch travels in one message

struct Batch {
  size_t bytes = 0;
  size_t message_bytes = 0;
  bool open = false;
  std::vector<Tensor*> tensors;
};

}  // namespace

std::vector<std::vector<Tensor*>> Fuse(const std::vector<Tensor*>& ready, size_t fusion_bytes) {
  std::vector<Batch> batches;
  for (Tensor* const tensor : ready) {
    const Request& request = tensor->request;
    const size_t bytes = Bytes(request);
    const size_t message_bytes = MessageBytes(request);
    const bool fusable = IsFusable(request) && bytes < kWorthAlone;
    const auto takes = [&](const Batch& batch) {
      return batch.open && batch.bytes + bytes <= fusion_bytes &&
             batch.message_bytes + message_bytes <= kMostMessageBytes &&
             FuseTogether(batch.tensors[0]->request, request);
    };
    auto batch = fusable ? std::find_if(batches.begin(), batches.end(), takes) : batches.end();
    if (batch == batches.end()) batch = batches.insert(batch, Batch{0, 0, fusable, {}});
    batch->bytes += bytes;
    batch->message_bytes += message_bytes;
    batch->tensors.push_back(tensor);
  }
  std::vector<std::vector<Tensor*>> result;
  for (Batch& batch : batches) result.push_back(std::move(batch.tensors));
  return result;
}

}  // namespace tutti::comm
