// FakeEngine is an engine for tests: it starts nothing, remembers every call, and fails when told
// to. Its launchers live until a test ends them. Thread-safe.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "platform/engine/engine.h"

namespace tutti::engine {

class FakeEngine final : public Engine {
 public:
  // Nodes n1…nN below `root` (a path that is only handed on).
  explicit FakeEngine(int node_count, std::string root = "/nowhere");

  EngineTraits traits() const override { return {}; }
  absl::StatusOr<std::vector<Node>> ListNodes() override;
  absl::Status Start(const Allocation& allocation) override;
  absl::Status Stop(const std::string& allocation_id, absl::Duration grace) override;
  absl::Status Kill(const std::string& allocation_id, int node_index) override;
  absl::StatusOr<std::vector<AllocationState>> Observe() override;
  absl::Status Release(const std::string& allocation_id) override;

  // Makes the next Start fail with `status` and leave nothing behind.
  void FailNextStart(absl::Status status);
  // Makes Observe fail with `status` until it is OK again.
  void FailObserve(absl::Status status);
  // Ends the launcher of that node, as after its work or by kill -9.
  void EndLauncher(const std::string& allocation_id, int node_index);

  // Returns how many launchers were started for that node of the allocation, the first included.
  int starts(const std::string& allocation_id, int node_index) const;
  bool stopped(const std::string& allocation_id) const;
  // Returns the whole allocations that were not released, by id.
  std::map<std::string, Allocation> allocations() const;

 private:
  struct Known {
    Allocation allocation;
    std::vector<bool> alive;
    std::vector<int> starts;
    bool stopped = false;
  };
  std::vector<Node> nodes_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_);
  absl::Status next_start_ ABSL_GUARDED_BY(mutex_);
  absl::Status observe_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::engine
