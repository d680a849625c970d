// NodeHealth decides when this machine's nodes are checked, and cordons a node that is ill, with
// the reason, until a check finds nothing (decision 057). Nodes of clusters are looked at by the
// launchers there: of what these find jobs are kept away for a while.
//
// Invariant: no look is made by who holds the lock or waits for a job to start: a node is glanced
// at every few seconds, so that one that has become ill gets no job. Each is a task of
// SharedState::health_work, in a queue of its node's; one that hangs holds that queue and a thread.
// A node that a job has failed on for a reason that may be the node's gets no job until it has been
// looked at.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "platform/health/node_check.h"
#include "platform/service/allocation/effects.h"
#include "platform/service/health/fault_ledger.h"
#include "platform/service/jobs/shared_state.h"

namespace tutti::service {

class NodeHealth {
 public:
  explicit NodeHealth(SharedState& state) : state_(state) {}

  // Adds the looks that are due. Mostly it is none, which costs a look at the clock.
  void Look(Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Notes how that attempt at the job has ended: its nodes are looked at soon, and those at once on
  // which it failed for a reason that may be theirs.
  void NoteEnd(const LiveJob& job, const Step& step, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Has the nodes of this machine looked at on which a process of the job has failed, before that
  // counts: `step` becomes the loss of a node where one is ill. False as long as that takes; call
  // it again at the next look, with the step as it is then.
  bool JudgeFailure(const LiveJob& job, Step& step, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns the nodes that get no job until they have been looked at, each with the job that failed
  // there.
  const std::map<std::string, std::string>& suspects() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
    return suspects_;
  }
  // Notes that a user has taken the node's cordon off: what was found is no reason to cordon it
  // again.
  void Accept(absl::string_view node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  // Checks as Service::CheckNode says.
  absl::StatusOr<std::vector<health::NodeCheck>> CheckNow(absl::string_view compute,
                                                          absl::string_view node)
      ABSL_LOCKS_EXCLUDED(service_lock);

 private:
  struct Watched {
    bool queued = false;                                 // a look is asked for
    bool runs = false;                                   // or under way
    absl::Duration began;                                // the one that is; since boot, as the next
    bool is_silent = false;                              // and has not come back in time
    bool soon = false;                                   // a job has ended there
    absl::Duration last = -absl::InfiniteDuration();     // when one came back
    absl::Duration glanced = -absl::InfiniteDuration();  // likewise, of glances
    std::set<std::string> ill;                           // the checks that failed at the last look
    std::set<std::string> accepted;                      // of them, those that a user has accepted
    std::string verdict;                                 // why it is ill if no check finds anything
    // Failures until then need no look of their own: one that came after others found nothing.
    absl::Duration cleared_until = -absl::InfiniteDuration();
  };
  // The looks at nodes on which processes of an allocation have failed.
  struct FailureLooks {
    absl::Duration began;
    std::set<std::string> nodes, pending;
  };
  using Change = std::function<void()>;  // of cordons in the store, to be made without the lock
  // Needs the lock.
  using Judgement = Change (NodeHealth::*)(const std::string& node,
                                           const std::vector<health::NodeCheck>& checks);

  void LookAtSuspects(Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  void NoteSilences(Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  void LookAtTheNextOne(Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Glances at nodes that have not been seen for some seconds (node_glance.cc).
  void GlanceAtNodes(Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  void Glance(const engine::Node& node) ABSL_LOCKS_EXCLUDED(service_lock);
  absl::Duration DueAt(const engine::Node& node, const Watched& watched) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  void Begin(const engine::Node& node, absl::Duration age, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  void NoteIllNodesOfCluster(const LiveJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  void LookAfterFailure(const LiveJob& job, FailureLooks& looks, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // The look at a node on which a process of that allocation failed then, since boot.
  void LookAfter(const engine::Node& node, absl::Duration failed, const std::string& allocation)
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Returns whether what is found to be wrong with the node may fail a process.
  bool MayHaveFailedAProcess(const std::string& node) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  void NoteFaults(const LiveJob& job, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Runs the checks of a node, on a thread that may wait.
  std::vector<health::NodeCheck> Check(const engine::Node& node, absl::Duration age)
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Takes a look or glance, which may hang, from its begin to its return: `look` is called without
  // the lock, `judge` and `note_back` with it, between them the change of cordons without it. At
  // the end of the service nothing follows from what is found.
  std::vector<health::NodeCheck> LookAt(const engine::Node& node,
                                        const std::function<std::vector<health::NodeCheck>()>& look,
                                        Judgement judge, const std::function<void()>& note_back)
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Returns the change of cordons that follows from a glance, which clears no node. Null if there
  // is none.
  Change JudgeGlance(const std::string& node, const std::vector<health::NodeCheck>& checks)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns the change of cordons that follows from the checks. Null if there is none.
  Change Judge(const std::string& node, const std::vector<health::NodeCheck>& checks)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  Change JudgeByJobs(const std::string& node, const std::string& verdict)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  Change NoteSilence(const engine::Node& node, Watched& watched)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Cordons the node, and returns what writes that. Null if it is cordoned already.
  Change ToCordon(const std::string& node, const std::string& reason, store::CordonAuthor author)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  bool IsCordonedByCheck(const std::string& node) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  SharedState& state_;
  FaultLedger ledger_ ABSL_GUARDED_BY(service_lock);
  std::map<std::string, Watched> nodes_ ABSL_GUARDED_BY(service_lock);
  std::map<std::string, std::string> suspects_ ABSL_GUARDED_BY(service_lock);
  std::map<std::string, FailureLooks> failure_looks_
      ABSL_GUARDED_BY(service_lock);                                 // by allocation
  std::vector<engine::Node> running_ ABSL_GUARDED_BY(service_lock);  // their looks
  size_t next_ ABSL_GUARDED_BY(service_lock) = 0;                    // whose turn it is
  size_t next_glance_ ABSL_GUARDED_BY(service_lock) = 0;             // likewise
  absl::Duration last_sweep_ ABSL_GUARDED_BY(service_lock) = -absl::InfiniteDuration();
};

}  // namespace tutti::service
