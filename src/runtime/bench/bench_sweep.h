// RunSweep measures all points of a benchmark: models x transports x numbers of ranks, by the ranks
// of this run on the same machines. Every rank of the run makes the same call.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/bench/measure.h"
#include "runtime/bench/point.h"
#include "runtime/comm/group_options.h"

namespace tutti::bench {

struct Sweep {
  std::vector<std::string> models = {"resnet20"};
  std::vector<std::string> transports = {"auto"};  // "auto", "shm", "tcp", "ucx"
  std::vector<int> ranks;                          // ascending; the first ranks of the run
  StepSetup setup;                                 // but for the model
  int threads = 1;                                 // per rank
  int cores = 1;                                   // per node
};

// Measures all points, in the order of models, transports, ranks; returns them on rank 0, and none
// on others. What one rank does alone is measured once per model. `measured` is told of each point
// as it is there. InvalidArgument: a transport that there is not, more ranks than there are.
absl::StatusOr<std::vector<Point>> RunSweep(const Sweep& sweep, comm::GroupOptions group,
                                            const std::function<void(const Point&)>& measured);

// Returns {1, 2, 4, ...} up to `most`, and `most` itself.
std::vector<int> RanksUpTo(int most);

}  // namespace tutti::bench
