// PrefetchBudget bounds the memory of request bodies that are read before a thread is free for
// their handlers, for nodes and for users separately, since requests go on arriving while handlers
// hang.
// Thread-safe. Internal to this room.
#pragma once

#include <atomic>
#include <cstdint>

#include "http/server/server.h"

namespace tutti::http {

class PrefetchBudget {
 public:
  // Lets each role have `most` bytes.
  explicit PrefetchBudget(int64_t most) : most_(most) {}

  // Takes the bytes; returns false, and takes none, if there is no room for them.
  bool Take(Role role, int64_t bytes) {
    std::atomic<int64_t>& taken = Of(role);
    if (taken.fetch_add(bytes) + bytes <= most_) return true;
    taken -= bytes;
    return false;
  }
  void GiveBack(Role role, int64_t bytes) { Of(role) -= bytes; }

 private:
  std::atomic<int64_t>& Of(Role role) { return role == Role::kNode ? of_nodes_ : of_users_; }

  const int64_t most_;
  std::atomic<int64_t> of_nodes_ = 0, of_users_ = 0;
};

}  // namespace tutti::http
