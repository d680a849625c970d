// TensorTable holds what the coordinator knows of every named tensor: what is pending, and the
// response cache, the numbers by which requests that succeeded before may be announced again.
//
// A number stands for one request as long as it is known, and is never given to another. So a rank
// may remember it for as long as it likes: at worst it is not known here any more, and is asked to
// say its request in full. Not thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "runtime/comm/negotiation/coordination/request.h"

namespace tutti::comm {

struct Tensor {
  Request request;  // as it was announced first
  uint32_t id = 0;  // 0: it has no number

  // What follows is set while it is pending:
  uint64_t order = 0;           // of its first announcement; 0: it is not pending
  int first = -1;               // who announced it first
  std::vector<bool> announced;  // by index in the process set
  size_t count = 0;
  bool by_id = true;  // all did so by its number
  bool ready = false;
  std::vector<std::vector<int64_t>> rows;
  std::string conflict;  // how two of them differ
  absl::Duration since;
  absl::Duration warned;  // when it was reported last

  bool pending() const { return order != 0; }
};

class TensorTable {
 public:
  explicit TensorTable(size_t capacity) : capacity_(capacity) {}

  // Finds a tensor; null if there is none. Pointers stay valid while a tensor is pending or has a
  // number.
  Tensor* ById(uint32_t id) const;
  // Returns the tensor of that name and set; made if there is none. One that is not pending takes
  // over `request`, and loses its number if that differs.
  Tensor& Named(const Request& request);

  void Begin(Tensor& tensor, size_t ranks, absl::Duration now);
  // Takes the tensor out of the pending ones. With `keep` it has, or gets, a number, which is
  // returned (0 where there is room for none). The tensor may be gone afterwards.
  uint32_t End(Tensor& tensor, bool keep);
  // Forgets what is not pending of that set.
  void ForgetSet(int set);

  // Returns the pending tensors, in the order of their first announcement.
  const std::map<uint64_t, Tensor*>& pending() const { return pending_; }
  std::vector<uint64_t> PendingOf(int set) const;

 private:
  void DropNumber(Tensor& tensor);
  uint32_t Number(Tensor& tensor);
  void Trim();

  const size_t capacity_;
  uint64_t next_order_ = 1;
  uint32_t next_id_ = 1;
  std::unordered_map<std::string, std::unique_ptr<Tensor>> by_key_;
  std::unordered_map<uint32_t, std::pair<Tensor*, std::list<Tensor*>::iterator>> by_id_;
  std::list<Tensor*> recent_;  // those with a number, the one used last at the end
  std::map<uint64_t, Tensor*> pending_;
};

}  // namespace tutti::comm
