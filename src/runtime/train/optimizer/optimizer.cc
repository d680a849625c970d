#include "runtime/train/optimizer/optimizer.h"

namespace tutti::train {

void AddByName(const std::string& prefix, const Optimizer::Buckets& buckets,
               const std::vector<torch::Tensor>& flat,
               std::map<std::string, torch::Tensor>& state) {
  for (size_t i = 0; i < buckets.size(); ++i) {
    for (const auto& slot : buckets[i]->slots()) {
      state[prefix + slot.name] = parallel::Bucket::View(flat[i], slot);
    }
  }
}

}  // namespace tutti::train
