// NodeHook is the interface of all that happens on a node before and after the processes of a job:
// its code, its environment, its MPI world and its results are a hook each, which takes part in the
// steps of the launcher's story that concern it. The next one is a file hooks/NAME_hook.cc, the
// declaration of its maker in node_hooks.h and its place in the list of node_hooks.cc.
#pragma once

#include <atomic>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "platform/launch/delivery/delivery.h"
#include "platform/launch/environment/process_environment.h"
#include "platform/launch/mpi/mpi_agreement.h"
#include "platform/launch/node/event_log.h"
#include "platform/launch/node/signals.h"
#include "platform/launch/node/spool.h"
#include "platform/launch/node/storing.h"
#include "platform/launch/node/wakeup.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// NodeContext is what hooks read, and what they make for the processes.
struct NodeContext {
  const spec::LaunchPlan& plan;
  Delivery* delivery;  // this and the next two are null where a launcher rehearses (standby.h)
  Signals* signals;
  Wakeup* news;  // notified when the service has answered
  NodeFacts facts;
  std::string command = {};             // what each rank runs
  std::vector<std::string> notes = {};  // what differs from what the job asked for; "": nothing
  MpiAgreement mpi = {};                // how the ranks are started
  std::shared_ptr<PmiServer> pmi = {};  // serves as long as the context is there
  EventLog* events = nullptr;           // this and the next are null where a launcher rehearses
  Spool* spool = nullptr;
};

class NodeHook {
 public:
  virtual ~NodeHook() = default;
  // Names the hook in logs: "inputs".
  virtual absl::string_view name() const = 0;

  // Returns whether Prepare, or BeforeStart, may take longer than a moment. If that of any hook
  // may, all are called on a thread of their own, so that the launcher can be told to end
  // meanwhile; else the job's processes need not wait for a thread.
  virtual bool PreparesSlowly(const spec::LaunchPlan& /*plan*/) const { return false; }
  virtual bool StartsSlowly(const spec::LaunchPlan& /*plan*/) const { return false; }

  // Called before the node reports that it is prepared. An error ends the job: it says what is
  // missing and, where it is the job's, the remedy. Cancelled once `cancelled` is set; it is looked
  // at between two files, say.
  virtual absl::Status Prepare(NodeContext& /*node*/, const std::atomic<bool>& /*cancelled*/) {
    return absl::OkStatus();
  }
  // Ends a wait in Prepare that does not look at `cancelled`; from another thread.
  virtual void Abandon(NodeContext& /*node*/) {}
  // Called once all nodes of the gang are prepared, before the first process. Errors are as of
  // Prepare.
  virtual absl::Status BeforeStart(NodeContext& /*node*/, const std::atomic<bool>& /*cancelled*/) {
    return absl::OkStatus();
  }

  // Called when no process is left, also by the launcher that follows one that died, without the
  // calls above.
  virtual void AfterEnd(const spec::LaunchPlan& /*plan*/) {}
  // Adds to the fields of the event "finalizing", and to the results before they are sent.
  // `failed`: a process did.
  virtual void Describe(const NodeContext& /*node*/, bool /*failed*/, Results& /*results*/,
                        nlohmann::json& /*left*/) {}
  // Called when the results have been sent of processes that ended by themselves. An error ends the
  // job.
  virtual absl::Status AfterResults(NodeContext& /*node*/) { return absl::OkStatus(); }
  // Returns whether Store has something to do for the job.
  virtual bool HasToStore(const spec::LaunchPlan& /*plan*/) const { return false; }
  // Called after that, also of processes that failed or were told to end, and by the launcher that
  // follows, without the calls above: brings what there is to places outside of the service. The
  // error is a line for the job's user, which says what is not there; Cancelled once `cancelled` is
  // set.
  virtual absl::Status Store(NodeContext& /*node*/, Storing /*how*/,
                             const std::atomic<bool>& /*cancelled*/) {
    return absl::OkStatus();
  }
  // Called when everything has been delivered, also by a launcher that follows.
  virtual void CleanUp(const spec::LaunchPlan& /*plan*/) {}
};

}  // namespace tutti::launch
