// Negotiation runs named collectives: every rank submits tensors in whatever order it has them,
// from any thread; the ranks agree on one order and run them. For frameworks whose graph decides
// when a gradient is there (negotiation/ is what Horovod's interface stands on). Who has a fixed
// order uses the Communicator and pays nothing for this.
//
// Three threads a rank, one more for callbacks, and that on which the group's control delivers:
//
//   submitters --> outbox --> thread --payload-> rank 0: inbox --> thread + Coordinator
//                                                                     | Orders, the same
//   Operation done <-- executor <-- queue <-- listener <--payload-----+ order to all
//
// The negotiation thread tells rank 0 what became ready, all that came since it last did at once;
// on rank 0 it also runs the Coordinator (which says why no rank can wait forever for another). The
// executor runs the responses as plain collectives, in the order told. So what is ready next is
// agreed on while the last is being reduced. No thread of the negotiation waits for the executor,
// and the executor waits for nothing but the group's collectives: an operation's callback and
// allocator, which it calls, must not wait for another operation. Stalls, and the callbacks of
// operations that end without having been run, have a thread of their own (callbacks.h): neither
// the negotiation nor this rank's heartbeat waits for them.
//
// A lost rank ends it: every outstanding operation gets the error that names it, and later ones get
// it at once. Thread-safe, but for destruction.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/negotiation/coordination/coordinator.h"
#include "runtime/comm/negotiation/coordination/tuner.h"
#include "runtime/comm/negotiation/execution/operation.h"
#include "runtime/comm/negotiation/execution/runner.h"

namespace tutti::comm {

struct NegotiationOptions {
  Tuning tuning;                 // fusion threshold and cycle time, at the start
  size_t cache_capacity = 1024;  // requests that need not be said in full again; 0: none
  StallOptions stall;            // peer_timeout is the group's
  // Every stall that is found, on every rank, in order, by a thread that is there for callbacks
  // alone. May be null.
  std::function<void(const Stall&)> on_stall;
  bool log_stalls = true;                              // as warnings, on rank 0
  absl::Duration collective_timeout = absl::Hours(1);  // for one, when all have what it needs
  bool autotune = false;                               // rank 0's counts
  std::string autotune_log;                            // a CSV file that rank 0 writes; "": none
  Tuner::Options tuner;
};

using OperationOr = absl::StatusOr<std::shared_ptr<Operation>>;

class Negotiation {
 public:
  // Takes the group over: nobody else calls it any more. All ranks of the group start one.
  static std::unique_ptr<Negotiation> Start(std::shared_ptr<Communicator> world,
                                            NegotiationOptions options);
  // Shutdown, if that was not.
  virtual ~Negotiation() = default;

  // From now until the operation is done the submission's memory is the negotiation's. Errors
  // (nothing was submitted then): InvalidArgument for what makes no sense, AlreadyExists while a
  // tensor of that name is outstanding, NotFound for an unknown process set, and what ended the
  // negotiation.
  virtual OperationOr Submit(Submission submission) = 0;

  // Called by all ranks of the world, in the same order. `ranks` are of the world. The operation's
  // value is the set's number; AlreadyExists names the one that has these ranks.
  virtual OperationOr AddProcessSet(std::vector<int> ranks) = 0;
  virtual OperationOr RemoveProcessSet(int set) = 0;
  virtual std::vector<int> ProcessSets() const = 0;
  // Returns the set's ranks in the world, ascending. NotFound for an unknown set.
  virtual absl::StatusOr<std::vector<int>> RanksOf(int set) const = 0;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual Placement placement() const = 0;
  // Returns how many newcomers wait to be taken into an elastic group, as far as this rank knows.
  // Must not be called while the negotiation ends.
  virtual int WaitingNewcomers() const = 0;

  // Records from now on into `path` (anew); `mark_cycles`: with a tick for every message of rank 0.
  virtual absl::Status StartTimeline(const std::string& path, bool mark_cycles) = 0;
  // Ends the timeline: everything is in the file when it returns. OK when nothing was recorded.
  virtual absl::Status StopTimeline() = 0;

  // Returns how it is tuned now. (On other ranks than 0: what was given at the start.)
  virtual Tuning tuning() const = 0;

  // Cancels what not all ranks have agreed on, finishes the rest and leaves the group: within
  // peer_timeout, if no collective and no callback is stuck. Others' operations that need this rank
  // fail and name it.
  virtual absl::Status Shutdown() = 0;
  // Does the same, but gives the group back instead of leaving it: for plain collectives, or to
  // re-form it after a loss. No other negotiation may start on it. Null after the end.
  virtual std::shared_ptr<Communicator> GiveBack() = 0;
};

}  // namespace tutti::comm
