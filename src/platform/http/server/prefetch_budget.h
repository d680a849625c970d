// PrefetchBudget bounds the memory of request bodies that are read before a thread is free for
// their handlers, for nodes and for users separately: where handlers hang, callers go on coming.
// Thread-safe. Internal to this room.
#pragma once

#include <atomic>
#include <cstdint>

#include "platform/http/server/server.h"

namespace tutti::http {

class PrefetchBudget {
 public:
  // Lets each party have `most` bytes.
  explicit PrefetchBudget(int64_t most) : most_(most) {}

  // Takes it; false: there is no room, and nothing is taken.
  bool Take(Party party, int64_t bytes) {
    std::atomic<int64_t>& taken = Of(party);
    if (taken.fetch_add(bytes) + bytes <= most_) return true;
    taken -= bytes;
    return false;
  }
  void GiveBack(Party party, int64_t bytes) { Of(party) -= bytes; }

 private:
  std::atomic<int64_t>& Of(Party party) { return party == Party::kNode ? of_nodes_ : of_users_; }

  const int64_t most_;
  std::atomic<int64_t> of_nodes_ = 0, of_users_ = 0;
};

}  // namespace tutti::http
