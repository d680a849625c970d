// GangLink connects the launchers of a gang, which agree over it on what makes their ranks one MPI
// world: the first node's listens at plan.start_port, the others come to it, and each proves to the
// other that it holds the job's token. Over the same connections the first then asks the others to
// run what mpirun wants to run on their nodes, which is what Open MPI would use ssh for. Not
// thread-safe.
//
//   node I -> first: {"node": I, "mpi": BOOL, "nonce": A}
//   first  -> I:     {"nonce": B, "proof": HMAC(token, "first A B")}
//   I      -> first: {"proof": HMAC(token, "I MPI A B")}
//   first  -> I:     {"pmix": BOOL, "mpirun": BOOL, "pmi": PORT}
//                                            once all have come: whether the first has the one,
//                                            else whether all have the other; where it serves PMI
//   first  -> I:     {"run": COMMAND}        I -> first: {"error": ""} or why it could not be
//   started
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "platform/launch/node/line_socket.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// MpiWay is what makes the ranks one MPI world: PMI alone, Open MPI's mpirun, Slurm's PMIx.
enum class MpiWay { kNone, kMpirun, kPmix };

class GangLink {
 public:
  // Returns once all launchers of the plan have met. `own`: what this node could do; kPmix is for
  // the first to say, which then stands for all. Cancelled when `cancelled` is set;
  // DeadlineExceeded names the node that did not come, Unavailable one whose launcher has gone.
  // `pmi_port`: of the first node's PMI (pmi_server.h), which the others are told.
  static absl::StatusOr<std::unique_ptr<GangLink>> Meet(const spec::LaunchPlan& plan, MpiWay own,
                                                        int pmi_port,
                                                        const std::atomic<bool>& cancelled,
                                                        base::Deadline deadline);

  MpiWay way() const { return way_; }
  int pmi_port() const { return pmi_port_; }
  // Returns the links to the other nodes, by index: all of them on the first node, only the first
  // on the others.
  std::map<int, LineSocket>& peers() { return peers_; }

 private:
  GangLink() = default;
  std::map<int, LineSocket> peers_;
  MpiWay way_ = MpiWay::kNone;
  int pmi_port_ = 0;
};

}  // namespace tutti::launch
