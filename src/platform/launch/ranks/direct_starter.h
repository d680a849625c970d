// Starts each rank of the node as a child of this process, all at once. Ranks of MPICH and Intel
// MPI then meet by PMI (mpi/pmi_server.h), whose address is in their environment.
#pragma once

#include "platform/launch/ranks/rank_starter.h"

namespace tutti::launch {

class DirectStarter : public RankStarter {
 public:
  explicit DirectStarter(const StartContext& context) : context_(context) {}
  absl::Status Begin() override;

 private:
  const StartContext context_;
};

// Starts one of the node's ranks so, with these facts.
absl::Status StartOwnRank(const StartContext& context, int local_rank, const NodeFacts& facts);

}  // namespace tutti::launch
