// Runs the ranks of a benchmark as processes of this machine, where no launcher has started them.
#pragma once

#include "absl/status/statusor.h"

namespace tutti {

// Returns how many cores this process may use.
int CoresOfThisProcess();

// Runs this program with the same arguments `ranks` times, each told its rank by the environment,
// and waits for all; all have this process's output. Returns the highest exit code. When one fails
// the others learn it by their collectives.
absl::StatusOr<int> RunLocalRanks(int ranks, char** argv);

}  // namespace tutti
