// LocalEngine runs jobs on this machine as if it were a small cluster: it has virtual nodes n1…nN,
// each with a loopback address (127.77.0.I), a folder, a share of the processors and of the memory,
// and, where it is permitted, a host name.
//
//   ROOT/hosts                     the nodes' /etc/hosts
//   ROOT/nI/ALLOCATION/            the allocation's folder on node I (docs/formats/launch-plan.md)
//   ROOT/nI/ALLOCATION/plan.json   its plan; a folder without one never began and is removed
//   ROOT/shared/ALLOCATION.json    of a gang: the part of the plan that its nodes share
//   ROOT/nI/ALLOCATION/started     a launcher has taken it: the folder goes by Release alone
//   ROOT/nI/ALLOCATION/launcher    process id and start time of the launcher started last
//   ROOT/nI/ALLOCATION/containers  its containers may be there: with its launcher dead they are
//                                  removed, and until they are the launcher counts as alive
//   ROOT/containers                allocations here have had containers
//   ROOT/nI/.released-ALLOCATION/  is being removed, by a thread that nobody waits for
//
// Launchers run in sessions of their own and outlive the engine; one that is opened anew finds them
// by these files. Thread-safe; one object per root.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/threads/janitor.h"
#include "platform/engine/engine.h"
#include "platform/engine/local/left_containers.h"
#include "platform/engine/local/node_isolation.h"
#include "platform/engine/local/placed_launcher.h"
#include "platform/engine/local/standby_launchers.h"

namespace tutti::engine {

struct LocalEngineOptions {
  std::filesystem::path root;  // absolute
  int node_count = 1;          // at most 16384
  // The launcher's command line up to the plan file: {"/usr/bin/tutti", "launch", "--plan"}.
  std::vector<std::string> launcher;
  // The command line of a launcher that waits for a plan (standby_launchers.h), up to the path of a
  // folder that it may make for an allocation meanwhile; empty: none wait.
  std::vector<std::string> standby;
  std::vector<int> cores;  // to share out; empty: those this process may use
  // Each node has so many of them, in turn, so that nodes share those of which there are too few;
  // 0: the cores are parted among the nodes.
  int cores_per_node = 0;
  int64_t memory_bytes = 0;  // to share out; 0: nine tenths of the machine's
};

class LocalEngine final : public Engine {
 public:
  static absl::StatusOr<std::unique_ptr<LocalEngine>> Open(const LocalEngineOptions& options);
  // Returns the nodes that such an engine has, without a look at its folder. InvalidArgument for
  // options that make no sense.
  static absl::StatusOr<std::vector<Node>> NodesOf(const LocalEngineOptions& options);

  EngineTraits traits() const override;
  absl::StatusOr<std::vector<Node>> ListNodes() override;
  // Starts its launchers; InvalidArgument for a plan that is for no node of this engine.
  absl::Status Start(const Allocation& allocation) override;
  absl::Status Stop(const std::string& allocation_id, absl::Duration grace) override;
  absl::Status Kill(const std::string& allocation_id, int node_index) override;
  absl::StatusOr<std::vector<AllocationState>> Observe() override;
  absl::Status Release(const std::string& allocation_id) override;

 private:
  using Gang = std::map<int, PlacedLauncher>;  // by node_index

  LocalEngine(const LocalEngineOptions& options, std::vector<Node> nodes,
              std::vector<std::string> gpus);
  absl::Status PrepareHosts();
  void FindAllocations();
  void FindAllocation(const std::filesystem::path& folder) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveStrayContainers();
  void RemoveStraySharedPlans() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the plan, unless there is a launcher of it.
  void RemoveSharedPlan(const std::string& allocation_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::filesystem::path SharedPlanOf(const std::string& allocation_id) const;
  // Returns its launchers, also those whose node is not known.
  std::vector<PlacedLauncher*> LaunchersOf(const std::string& allocation_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<int> NodeOf(const Allocation& allocation, const spec::NodePart& part) const;
  absl::Status StartOn(const Allocation& allocation, const spec::NodePart& part,
                       PlacedLauncher& placed);
  void TakeBack(Gang& gang, const std::vector<int>& nodes);
  // Returns whether its launcher runs, or what that has left when it died.
  bool IsThere(PlacedLauncher& placed);
  // Adds what is true of one launcher.
  void Tell(PlacedLauncher& placed, size_t index, AllocationState& state);
  base::ChildOptions LauncherOn(int node, std::vector<std::string> arguments) const;
  void KeepStandbys();

  const LocalEngineOptions options_;
  const std::vector<Node> nodes_;
  const std::vector<std::string> gpus_;
  Isolation isolation_ = Isolation::kNone;
  base::Janitor janitor_;  // of folders that are released
  LeftContainers left_containers_;
  absl::Mutex mutex_;
  std::map<std::string, Gang> gangs_ ABSL_GUARDED_BY(mutex_);
  // Launchers that had begun and whose plan is lost, by a power failure say: which of their
  // allocation's nodes each one serves is unknown.
  std::map<std::string, std::vector<PlacedLauncher>> without_plan_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<StandbyLaunchers> standbys_;  // may be null
};

// Returns the processors of node `index` of `node_count`: disjoint shares, or one each in turn when
// there are more nodes than processors.
std::vector<int> ShareOf(const std::vector<int>& cores, int index, int node_count);
// Returns the cores of that node where each has `count` of them, at most all.
std::vector<int> TurnOf(const std::vector<int>& cores, int index, int count);

}  // namespace tutti::engine
