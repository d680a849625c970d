// Defines Engine, the interface to a place where jobs run: this machine's virtual nodes (local/), a
// Slurm cluster (slurm/), one of these that is not there yet (deferred_engine.h), or a fake for
// tests (fake/). One instance per compute; calls may come from any thread. An engine starts
// launchers and says what is true of them; it knows nothing of job states, output or results, which
// launchers report to the service.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "spec/json/gang_plan.h"

namespace tutti::engine {

struct EngineTraits {
  bool schedules_itself =
      false;                    // true: the queue is the engine's (Slurm); false: tutti's scheduler
  bool caches_by_node = false;  // each of its nodes keeps data of its own (Allocation::prefer)
};

struct Node {
  std::string name;
  std::string address;     // numeric
  std::vector<int> cores;  // processor numbers of its share; may overlap on a small machine
  int64_t memory_bytes = 0;
  std::string directory;               // its scratch folder, absolute
  std::vector<std::string> gpus = {};  // its share, as CUDA_VISIBLE_DEVICES of its launchers
  // The node's state, in the words of spec/types/node_state.h, and the engine's own reason for it.
  // Only an engine that schedules for itself says them.
  std::string state, reason;
};

// The nodes of one gang: the plan as far as they share it, and what is each one's own, in
// node_index order; plan.nodes names the nodes. For an engine that schedules for itself those names
// stand for nodes that it has yet to choose.
struct Allocation {
  std::string id;
  spec::LaunchPlan plan;
  std::vector<spec::NodePart> nodes;
  spec::Priority priority = spec::Priority::kNormal;  // in the engine's own queue
  spec::SlurmSettings slurm;  // what the job asks of Slurm over its compute's settings
  // Nodes that an engine which schedules for itself is to give it only if there are no others.
  std::vector<std::string> avoid = {};
  // Nodes that have its data, which such an engine is to give it if they are free now. A wish: it
  // begins elsewhere rather than to wait for them longer than some seconds.
  std::vector<std::string> prefer = {};
  // A job of the same service is just leaving these nodes: they are free in a moment.
  std::vector<std::string> being_left = {};
};

struct AllocationState {
  std::string id;
  // One per node that was ever started here: false once its launcher process has ended, and nothing
  // that outlives it (containers) is left.
  std::vector<bool> launcher_alive;

  // Told only by an engine that does not schedule for itself: the nodes, by name, where launchers
  // of the allocation were started and not released, each with the processors, memory and GPUs of
  // its part, or with none of these where the allocation has the whole node.
  std::vector<Node> occupied = {};
  // Likewise: what a launcher that has ended left running, which is why it counts as alive, and why
  // that cannot be ended so far, in one line; "": nothing, or it is just being ended.
  std::string left = {};

  // What follows is told only by an engine that schedules for itself:
  bool waits = false;      // in its queue, for `reason`; no node has been given
  bool suspended = false;  // its processes stand still, on the nodes that they have
  std::optional<absl::Time> expected_start;
  std::vector<Node> nodes;  // given to it, in node_index order
  std::string reason;       // of one that has ended: how, if the engine has something to say of it
  bool lost = false;        // likewise: it lost a node, and may run well on others
  // With `lost`: since the disk that its nodes share was full no launcher began everywhere. No node
  // is at fault, and nothing of the job ran.
  bool disk_full = false;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual EngineTraits traits() const = 0;
  // Returns why it can be neither observed nor told to do anything yet, in one line; "" if it can.
  // Quick: may be called under locks.
  virtual std::string WhyOutOfReach() const { return ""; }
  // Lists the nodes. Those of an engine that schedules for itself are what it says now: asking
  // takes up to seconds.
  virtual absl::StatusOr<std::vector<Node>> ListNodes() = 0;
  // Returns why none of its nodes can ever have such a job, in one line with what to do; "" if
  // nothing is known against it by `deadline`.
  virtual std::string WhyNeverOn(const spec::SlurmSettings&, base::Deadline) { return ""; }

  // Returns whether launchers that are started now make their calls of the service themselves.
  // False: by a folder that they share with it.
  virtual bool LaunchersReachService() const { return true; }

  // Returns the folder that its nodes share with this machine, below which launchers keep
  // `environments` and `data`; "" if there is none of its own, or it cannot be used now. Quick.
  virtual std::string SharedFolder() const { return ""; }

  // Starts one launcher per node: all nodes or none. Idempotent on allocation.id: for a node whose
  // launcher lives it does nothing; for one whose launcher died it starts a launcher that finds the
  // first one's traces, runs nothing, delivers what is left in the spool and reports the loss.
  virtual absl::Status Start(const Allocation& allocation) = 0;

  // Asks every launcher to end its processes: SIGTERM, after `grace` SIGKILL. Returns at once; OK
  // if nothing runs. Launchers still deliver output and results before they end; a Slurm job has a
  // minute for it.
  virtual absl::Status Stop(const std::string& allocation_id, absl::Duration grace) = 0;

  // Does the same, but leaves launchers the time that they take to deliver, for as long as that may
  // be: none is ended by force before Stop or Kill is called too. Those that were left it are told
  // once more by Stop.
  virtual absl::Status StopPatiently(const std::string& allocation_id, absl::Duration grace) {
    return Stop(allocation_id, grace);
  }

  // Ends one launcher by force, with all that it runs: it has been told to end and was given up.
  // Returns at once; OK if it has ended. A Slurm job is ended as a whole, on all nodes. One that is
  // there for a minute longer, in a wait of the kernel's that no signal ends, counts as ended:
  // Observe says so, and Release forgets it.
  virtual absl::Status Kill(const std::string& allocation_id, int node_index) = 0;

  // Returns what is true now, including of allocations that were started before this process was.
  virtual absl::StatusOr<std::vector<AllocationState>> Observe() = 0;

  // Makes what Observe says true of now soon: a launcher of an allocation that was waiting has
  // come. Returns at once; for engines that look only now and then.
  virtual void Refresh() {}

  // Forgets an allocation whose launchers have all ended and removes its folders. OK if unknown.
  virtual absl::Status Release(const std::string& allocation_id) = 0;
};

}  // namespace tutti::engine
