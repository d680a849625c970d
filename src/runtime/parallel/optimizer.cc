#include "runtime/parallel/optimizer.h"

namespace tutti::parallel {

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

}  // namespace tutti::parallel
