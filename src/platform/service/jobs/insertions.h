// Insertions knows the jobs that are on their way into the store: who names one of them waits until
// it is known what became of it, since it may be in the store and not yet among the live ones.
#pragma once

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "platform/service/jobs/shared_state.h"

namespace tutti::service {

class Insertions {
 public:
  explicit Insertions(SharedState& state) : state_(state) {}

  // Begins an insertion; AlreadyExists if one of that name is on its way.
  absl::Status Begin(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  void End(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Waits until that job is no longer on its way; releases the lock meanwhile.
  void Await(absl::string_view id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  size_t size() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) { return ids_.size(); }

 private:
  SharedState& state_;
  std::set<std::string, std::less<>> ids_ ABSL_GUARDED_BY(service_lock);
};

}  // namespace tutti::service
