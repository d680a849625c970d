// MpiAgreement is what the launchers of a gang agree on, before any starts a rank, so that their
// ranks become one MPI_COMM_WORLD. In a job of Slurm's that offers it they take Slurm's PMIx: srun,
// on the first node, brings each rank's PMIx variables to its node's launcher, which starts the
// rank with that (slurm_pmix.h). Else they take Open MPI's mpirun, where every node has it: mpirun
// runs on the first node; its daemons on the others are started by their launchers (gang_link.h)
// and not by ssh; and each rank connects to its node's launcher (rank_listener.h) for what it is to
// run. So ranks belong to an MPI_COMM_WORLD and are in all else like those that a launcher starts
// itself. Else the launchers start the ranks themselves, and MPICH's and Intel MPI's meet by the
// PMI that the first node serves (pmi_server.h).
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "platform/launch/environment/process_environment.h"
#include "platform/launch/mpi/gang_link.h"
#include "platform/launch/mpi/pmi_server.h"
#include "platform/launch/mpi/rank_listener.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// By default each launcher starts its ranks itself, and they are no MPI world.
struct MpiAgreement {
  MpiWay way = MpiWay::kNone;
  // What follows is set for kMpirun and kPmix:
  std::string program;             // mpirun, as this node has it; or srun, on the first node
  std::unique_ptr<GangLink> link;  // to the other launchers
  std::optional<RankListener> listener;
  // What follows is set for kNone, if the job wants an MPI world:
  std::shared_ptr<PmiServer> pmi;  // on the first node
  std::string pmi_address;         // of that, for NodeFacts::pmi
};

// Meets the gang's other launchers. Cancelled when `cancelled` is set. A plan that wants no MPI
// world has nothing to agree on.
absl::StatusOr<MpiAgreement> AgreeOnMpi(const spec::LaunchPlan& plan, const NodeFacts& facts,
                                        const std::atomic<bool>& cancelled);

// Returns the folder of the listener's socket and of kLauncherLink.
std::filesystem::path SocketFolder(const spec::LaunchPlan& plan, const NodeFacts& facts);

}  // namespace tutti::launch
