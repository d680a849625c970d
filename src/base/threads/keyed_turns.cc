#include "base/threads/keyed_turns.h"

namespace tutti::base {

void KeyedTurns::Begin(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  const auto is_free = [&]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !taken_.contains(key); };
  mutex_.Await(absl::Condition(&is_free));
  taken_.insert(key);
}

void KeyedTurns::End(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  taken_.erase(key);
}

}  // namespace tutti::base
