#include "runtime/comm/negotiation/coordination/tensor_table.h"

namespace tutti::comm {

Tensor* TensorTable::ById(uint32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second.first;
}

Tensor& TensorTable::Named(const Request& request) {
  std::unique_ptr<Tensor>& tensor = by_key_[request.Key()];
  if (tensor == nullptr) tensor = std::make_unique<Tensor>();
  if (!tensor->pending() && tensor->request != request) {
    DropNumber(*tensor);
    tensor->request = request;
  }
  return *tensor;
}

void TensorTable::Begin(Tensor& tensor, size_t ranks, absl::Duration now) {
  tensor.order = next_order_++;
  tensor.announced.assign(ranks, false);
  tensor.count = 0;
  tensor.by_id = true;
  tensor.ready = false;
  tensor.rows.clear();
  tensor.conflict.clear();
  tensor.since = tensor.warned = now;
  pending_.emplace(tensor.order, &tensor);
}

uint32_t TensorTable::End(Tensor& tensor, bool keep) {
  pending_.erase(tensor.order);
  tensor.order = 0;
  if (keep && capacity_ > 0) return Number(tensor);
  DropNumber(tensor);
  by_key_.erase(tensor.request.Key());
  return 0;
}

uint32_t TensorTable::Number(Tensor& tensor) {
  if (tensor.id == 0) {
    tensor.id = next_id_++;
  } else {
    recent_.erase(by_id_.at(tensor.id).second);
  }
  by_id_[tensor.id] = {&tensor, recent_.insert(recent_.end(), &tensor)};
  const uint32_t id = tensor.id;
  Trim();
  return id;
}

void TensorTable::Trim() {
  for (auto it = recent_.begin(); recent_.size() > capacity_ && it != recent_.end();) {
    Tensor& oldest = **it++;
    if (oldest.pending() || it == recent_.end()) continue;  // the last is the one just used
    DropNumber(oldest);
    by_key_.erase(oldest.request.Key());
  }
}

void TensorTable::DropNumber(Tensor& tensor) {
  if (tensor.id == 0) return;
  recent_.erase(by_id_.at(tensor.id).second);
  by_id_.erase(tensor.id);
  tensor.id = 0;
}

void TensorTable::ForgetSet(int set) {
  for (auto it = by_key_.begin(); it != by_key_.end();) {
    Tensor& tensor = *it->second;
    if (tensor.request.set != set || tensor.pending()) {
      ++it;
      continue;
    }
    DropNumber(tensor);
    it = by_key_.erase(it);
  }
}

std::vector<uint64_t> TensorTable::PendingOf(int set) const {
  std::vector<uint64_t> orders;
  for (const auto& [order, tensor] : pending_) {
    if (tensor->request.set == set) orders.push_back(order);
  }
  return orders;
}

}  // namespace tutti::comm
