// FakeCluster plays a cluster's scheduler for tests: its queue is all there is of it. Not
// thread-safe.
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "platform/engine/engine.h"

namespace tutti::service {

class FakeCluster final : public engine::Engine {
 public:
  engine::EngineTraits traits() const override {
    return {.schedules_itself = true, .caches_by_node = caches_by_node};
  }
  absl::StatusOr<std::vector<engine::Node>> ListNodes() override {
    if (during_list) during_list();
    return nodes;
  }
  std::string SharedFolder() const override { return shared_folder; }
  absl::Status Start(const engine::Allocation& allocation) override {
    if (during_start) during_start();
    if (!fail_start.ok()) return fail_start;
    if (allocations_.insert(allocation.id).second) started_.push_back(allocation.id);
    plan = allocation.plan;
    avoid = allocation.avoid;
    prefer = allocation.prefer;
    being_left = allocation.being_left;
    return absl::OkStatus();
  }
  absl::Status Stop(const std::string& id, absl::Duration) override {
    stopped.insert(id);
    return absl::OkStatus();
  }
  absl::Status StopPatiently(const std::string& id, absl::Duration) override {
    stopped_patiently.insert(id);
    return absl::OkStatus();
  }
  absl::Status Kill(const std::string& id, int) override {
    killed.insert(id);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<engine::AllocationState>> Observe() override {
    std::vector<engine::AllocationState> states;
    for (const std::string& id : allocations_) {
      const bool is_lost =
          std::find(started_.begin(), started_.end(), id) - started_.begin() < losses;
      if (runs) {
        states.push_back({.id = id,
                          .launcher_alive = {!dead, !dead},
                          .suspended = suspended,
                          .nodes = {{.name = "n1"}, {.name = "n2"}},
                          .reason = disk_full ? "the disk was full" : "",
                          .lost = disk_full,
                          .disk_full = disk_full});
        continue;
      }
      states.push_back({.id = id,
                        .waits = !is_lost,
                        .reason = is_lost ? "its nodes did not boot" : "waits",
                        .lost = is_lost});
    }
    return states;
  }
  absl::Status Release(const std::string& id) override {
    allocations_.erase(id);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<engine::Node>> nodes = std::vector<engine::Node>();
  std::string shared_folder;  // as SharedFolder says
  std::function<void()> during_start, during_list;
  absl::Status fail_start;
  spec::LaunchPlan plan;  // that the nodes share, of the allocation that came last
  std::vector<std::string> avoid, prefer, being_left;  // likewise
  bool caches_by_node = false;                         // as traits says; set before the service
  // So many allocations are lost, the first ones, before it has told of any node of them. All
  // others wait.
  int losses = 0;
  bool runs = false;       // they do not wait, but have two nodes, whose launchers live
  bool dead = false;       // or have died
  bool disk_full = false;  // for which they died before they had begun
  bool suspended = false;  // they stand still
  std::set<std::string> stopped, killed;
  std::set<std::string> stopped_patiently;
  const std::set<std::string>& allocations() const { return allocations_; }

 private:
  std::set<std::string> allocations_;  // that are not released
  std::vector<std::string> started_;
};

}  // namespace tutti::service
