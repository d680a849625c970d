#include "platform/service/monitoring/cluster_nodes.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace tutti::service {

bool ClusterNodes::IsDue(Known& known) const {
  const absl::Duration now = state_.clock->SinceBoot();
  if (known.is_asked || now - known.asked < kFresh) return false;
  known.is_asked = true;
  known.asked = now;
  return true;
}

void ClusterNodes::Ask(const std::string& compute, engine::Engine& engine) {
  const absl::Cleanup answered = [this, &compute] {  // also if it throws
    absl::MutexLock lock(&mutex_);
    known_[compute].is_asked = false;
  };
  absl::StatusOr<std::vector<engine::Node>> nodes = engine.ListNodes();
  if (!nodes.ok()) return;
  absl::MutexLock lock(&mutex_);
  Known& known = known_[compute];
  known.nodes = std::make_shared<const std::vector<engine::Node>>(*std::move(nodes));
  known.said = state_.clock->SinceBoot();
}

std::map<std::string, ClusterNodes::Nodes> ClusterNodes::Look() {
  for (const auto& [compute, engine] : state_.engines.clusters) {
    if (!engine->WhyOutOfReach().empty()) continue;
    {
      absl::MutexLock lock(&mutex_);
      if (!IsDue(known_[compute])) continue;
    }
    // Not in the queue of the compute's engine, whose calls would wait for it.
    state_.health_work.Do(absl::StrCat("nodes of ", compute),
                          [this, compute = compute, engine = engine] { Ask(compute, *engine); });
  }
  std::map<std::string, Nodes> nodes;
  absl::MutexLock lock(&mutex_);
  for (const auto& [compute, known] : known_) {
    if (state_.clock->SinceBoot() - known.said < kHolds) nodes[compute] = known.nodes;
  }
  return nodes;
}

}  // namespace tutti::service
