// Makes the ranks of a job one MPI_COMM_WORLD. By Slurm's PMIx in a job of Slurm's that offers it:
// srun, on the first node, brings each rank's place to its node's launcher, which starts the rank
// with that (slurm_pmix.h). Else by Open MPI's mpirun, where every node has it: mpirun runs on the
// first node; its daemons on the others are started by their launchers (gang_link.h) and not by
// ssh; and each rank comes to its node's launcher (rank_listener.h) for what it is to be. So ranks
// belong to an MPI_COMM_WORLD and are in all else like those that a launcher starts itself. Else
// the launchers start the ranks themselves, and MPICH's and Intel MPI's meet by the PMI that the
// first node serves (pmi_server.h). Not thread-safe.
#pragma once

#include <poll.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/child_process.h"
#include "platform/launch/environment/environment.h"
#include "platform/launch/mpi/gang_link.h"
#include "platform/launch/mpi/pmi_server.h"
#include "platform/launch/mpi/rank_listener.h"
#include "platform/launch/node/output_pipe.h"
#include "platform/launch/node/process_limit.h"

namespace tutti::launch {

class MpiStart;

// What the launchers of a gang have agreed on. All empty: the job wants no MPI world.
struct MpiWorld {
  std::unique_ptr<MpiStart> start;  // null: each launcher starts its ranks
  std::unique_ptr<PmiServer> pmi;   // on the first node, where they do
  std::string pmi_address;          // of that, for NodeFacts::pmi
};

class MpiStart {
 public:
  // Meets the gang's other launchers. Cancelled when `cancelled` is set.
  static absl::StatusOr<MpiWorld> Agree(const spec::LaunchPlan& plan, const NodeFacts& facts,
                                        const std::atomic<bool>& cancelled);

  // Starts mpirun or srun on the first node. What it, or this node's daemon, has to say goes to
  // `words`; it and all that it starts are held to `limit`. Call it on the thread that the
  // processes are to die with.
  absl::Status Begin(const ProcessLimit* limit, SpoolFile* words);

  // Whether the launchers start the ranks, each as its place comes.
  bool by_pmix() const { return link_->way() == MpiWay::kPmix; }
  // srun, mpirun or its daemon runs here, or will: ranks may still come.
  bool running() const { return starter_.has_value() || repeats_ || !was_started_; }
  // The first node's launcher has ended before all of them had.
  bool alone() const { return !was_started_ && link_->peers().empty(); }
  pid_t starter() const { return starter_ ? starter_->pid() : -1; }
  OutputPipe* words() { return words_ ? &*words_ : nullptr; }
  void AddTo(std::vector<pollfd>& waiting) const;

  // What clients have sent. Passes mpirun's wishes on to the other launchers, and theirs to
  // here.
  std::vector<RankMessage> Take();
  RankListener& listener() { return listener_; }
  // Nothing is started any more: all ranks of the node have begun, or are to end.
  void ExpectNoMore() {
    was_started_ = true;
    repeats_ = false;
  }
  // Reaps the starter. OK if it ended well; else what it said last. Of srun: Unavailable if it
  // found no slurmctld, FailedPrecondition if Slurm has not launched all its tasks.
  absl::Status StarterEnded();
  // Begin will be called again.
  void ExpectAgain() { repeats_ = true; }

 private:
  MpiStart(const spec::LaunchPlan& plan, const NodeFacts& facts, std::string program,
           std::unique_ptr<GangLink> link, RankListener listener)
      : plan_(plan),
        facts_(facts),
        program_(std::move(program)),
        link_(std::move(link)),
        listener_(std::move(listener)) {}
  absl::Status Run(std::vector<std::string> arguments, Variables environment);
  Variables EnvironmentOfStarter() const;
  void PassOn(const RankMessage& wish);
  void HearPeers();
  void HearPeer(int node, LineSocket& socket, const nlohmann::json& message);

  const spec::LaunchPlan& plan_;
  const NodeFacts facts_;
  const std::string program_;  // mpirun, as this node has it; or srun, on the first node
  std::unique_ptr<GangLink> link_;
  RankListener listener_;
  const ProcessLimit* limit_ = nullptr;
  SpoolFile* spool_ = nullptr;
  std::optional<base::ChildProcess> starter_;
  std::optional<OutputPipe> words_;
  bool was_started_ = false;
  bool repeats_ = false;       // Begin is to be called again
  std::map<int, int> agents_;  // node -> the agent that waits for its answer
};

}  // namespace tutti::launch
