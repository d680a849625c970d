// Ranks of one MPI world. Horovod's are started as those are.
#include "spec/types/job_distribution.h"

namespace tutti::spec {
namespace {

std::optional<StartPort> StartPortOfMpi(const Distribution&, int nodes) {
  if (nodes == 1) return std::nullopt;
  return StartPort{.usual = 6104};
}

}  // namespace

extern const DistributionDriver kMpi;
const DistributionDriver kMpi = {
    .type = "mpi", .other_type = "horovod", .start_port = StartPortOfMpi, .is_mpi = true};

}  // namespace tutti::spec
