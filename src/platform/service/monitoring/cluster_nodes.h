// ClusterNodes has what clusters have said last of their nodes, so that who asks every few seconds
// waits for no cluster. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "platform/engine/engine.h"
#include "platform/service/jobs/shared_state.h"

namespace tutti::service {

class ClusterNodes {
 public:
  // A cluster is asked again after the first of these times, and what it said holds for the other.
  static constexpr absl::Duration kFresh = absl::Seconds(10), kHolds = absl::Minutes(5);

  explicit ClusterNodes(SharedState& state) : state_(state) {}

  using Nodes = std::shared_ptr<const std::vector<engine::Node>>;
  // Returns the nodes by compute, without those of which nothing is known, and has those asked that
  // were not for a while: the next call may know more.
  std::map<std::string, Nodes> Look() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Known {
    Nodes nodes;
    absl::Duration said = -absl::InfiniteDuration();  // since boot, as the next
    absl::Duration asked = -absl::InfiniteDuration();
    bool is_asked = false;  // now
  };
  // Returns whether it is to be asked now.
  bool IsDue(Known& known) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Ask(const std::string& compute, engine::Engine& engine) ABSL_LOCKS_EXCLUDED(mutex_);

  SharedState& state_;
  absl::Mutex mutex_;
  std::map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::service
