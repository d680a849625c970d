#include "platform/engine/fake/engine_fake.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tutti::engine {

FakeEngine::FakeEngine(int node_count, std::string root) {
  for (int i = 1; i <= node_count; ++i) {
    Node node;
    node.name = absl::StrCat("n", i);
    node.address = absl::StrCat("127.77.0.", i);
    node.cores = {i - 1};
    node.memory_bytes = int64_t{1} << 30;
    node.directory = absl::StrCat(root, "/", node.name);
    nodes_.push_back(std::move(node));
  }
}

absl::StatusOr<std::vector<Node>> FakeEngine::ListNodes() { return nodes_; }

absl::Status FakeEngine::Start(const Allocation& allocation) {
  absl::MutexLock lock(&mutex_);
  if (!next_start_.ok()) return std::exchange(next_start_, absl::OkStatus());
  for (const spec::PlanNode& place : allocation.plan.nodes) {
    const bool exists = std::any_of(nodes_.begin(), nodes_.end(),
                                    [&](const Node& node) { return node.name == place.name; });
    if (!exists) return absl::InvalidArgumentError(absl::StrCat("there is no node ", place.name));
  }
  Known& known = known_[allocation.id];
  known.allocation = allocation;
  known.alive.resize(allocation.nodes.size(), false);
  known.starts.resize(allocation.nodes.size(), 0);
  for (size_t i = 0; i < known.alive.size(); ++i) {
    if (known.alive[i]) continue;
    known.alive[i] = true;
    ++known.starts[i];
  }
  return absl::OkStatus();
}

absl::Status FakeEngine::Stop(const std::string& allocation_id, absl::Duration grace) {
  absl::MutexLock lock(&mutex_);
  const auto known = known_.find(allocation_id);
  if (known != known_.end()) known->second.stopped = true;
  return absl::OkStatus();
}

absl::Status FakeEngine::Kill(const std::string& allocation_id, int node_index) {
  absl::MutexLock lock(&mutex_);
  const auto known = known_.find(allocation_id);
  if (known == known_.end()) return absl::OkStatus();
  std::vector<bool>& alive = known->second.alive;
  if (node_index >= 0 && node_index < static_cast<int>(alive.size())) alive[node_index] = false;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<AllocationState>> FakeEngine::Observe() {
  absl::MutexLock lock(&mutex_);
  if (!observe_.ok()) return observe_;
  std::vector<AllocationState> states;
  for (const auto& [id, known] : known_) states.push_back({id, known.alive});
  return states;
}

absl::Status FakeEngine::Release(const std::string& allocation_id) {
  absl::MutexLock lock(&mutex_);
  const auto known = known_.find(allocation_id);
  if (known == known_.end()) return absl::OkStatus();
  if (std::count(known->second.alive.begin(), known->second.alive.end(), true) > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("a launcher of allocation ", allocation_id, " still runs"));
  }
  known_.erase(known);
  return absl::OkStatus();
}

void FakeEngine::FailNextStart(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  next_start_ = std::move(status);
}

void FakeEngine::FailObserve(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  observe_ = std::move(status);
}

void FakeEngine::EndLauncher(const std::string& allocation_id, int node_index) {
  absl::MutexLock lock(&mutex_);
  const auto known = known_.find(allocation_id);
  if (known != known_.end()) known->second.alive.at(node_index) = false;
}

int FakeEngine::starts(const std::string& allocation_id, int node_index) const {
  absl::MutexLock lock(&mutex_);
  const auto known = known_.find(allocation_id);
  return known == known_.end() ? 0 : known->second.starts.at(node_index);
}

bool FakeEngine::stopped(const std::string& allocation_id) const {
  absl::MutexLock lock(&mutex_);
  const auto known = known_.find(allocation_id);
  return known != known_.end() && known->second.stopped;
}

std::map<std::string, Allocation> FakeEngine::allocations() const {
  absl::MutexLock lock(&mutex_);
  std::map<std::string, Allocation> all;
  for (const auto& [id, known] : known_) all[id] = known.allocation;
  return all;
}

}  // namespace tutti::engine
