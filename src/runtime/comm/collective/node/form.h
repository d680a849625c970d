// Forms the team of the ranks that share memory with this one.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/comm/collective/links.h"
#include "runtime/comm/collective/node/node_team.h"

namespace tutti::comm {

// Returns the ranks that share memory with `rank`, and itself, in ascending order.
absl::StatusOr<std::vector<int>> NeighboursOf(const Table& table, int rank);

// Called by all ranks of the group. Null if this rank shares memory with no other. `spins`: how
// often to look again before sleeping, at most.
absl::StatusOr<std::unique_ptr<NodeTeam>> FormNodeTeam(Links& links, int spins,
                                                       base::Deadline deadline);

}  // namespace tutti::comm
