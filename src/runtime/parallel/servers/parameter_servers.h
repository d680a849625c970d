// Parameter servers (Dean et al. 2012; Li et al. 2014): the last ranks of a run hold its
// parameters, the others, workers, each take a step's samples by themselves, fetch the parameters,
// and send the gradient, which the servers take up with the run's optimizer while other workers
// compute.
//
// A step is one worker's gradient; each that is taken up makes a version of the parameters. A
// gradient is at most `staleness` versions late; 0 is rounds: one gradient of each worker, all of
// one version, are added up in the order of the ranks, and their mean is one update. See clerk.h.
//
// Whole tensors lie on one server, where LARS and LAMB find their norms; clipping is by the worker,
// to the norm of its own gradient. Every server takes up the same gradients in the same order,
// which the first one says: a version is the same on all of them. Running statistics are each
// worker's; where the ranks settle, all take the mean.
//
// Between two meetings no worker waits for another one but by the bound. What a step tells is about
// its own samples and those of the others that rank 0 has heard of since.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/parallel/data_parallel.h"
#include "runtime/parallel/strategy.h"

namespace tutti::parallel {

struct ParameterServersOptions {
  Layout layout;              // with ranks that serve
  DataParallelOptions inner;  // how a worker finds its gradient, and what servers update by
  int64_t staleness = 0;
};

// Makes this rank's part, by its role. Takes the communicator; all ranks call it. Figures are
// "staleness", the mean over this worker's gradients that were taken up, "staleness_most",
// "steps_per_second", of a server the gradients that it took up, and "exchange_bytes" that the rank
// has sent. InvalidArgument: see CheckTrainable, and fewer parts of
// the model than servers.
absl::StatusOr<std::unique_ptr<Strategy>> MakeParameterServers(
    const models::Model& model, std::unique_ptr<comm::Communicator> communicator,
    ParameterServersOptions options, base::Deadline deadline);

}  // namespace tutti::parallel
