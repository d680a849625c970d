#include "runtime/comm/collective/node/form.h"

#include <utility>

#include "base/status.h"

namespace tutti::comm {

absl::StatusOr<std::vector<int>> NeighboursOf(const Table& table, int rank) {
  std::vector<int> members;
  for (int other = 0; other < static_cast<int>(table.ranks.size()); ++other) {
    TUTTI_ASSIGN_OR_RETURN(const bool shares, SharesMemory(table.ranks[rank], table.ranks[other]));
    if (shares || other == rank) members.push_back(other);
  }
  return members;
}

absl::StatusOr<std::unique_ptr<NodeTeam>> FormNodeTeam(Links& links, int spins,
                                                       base::Deadline deadline) {
  TUTTI_ASSIGN_OR_RETURN(std::vector<int> members,
                         NeighboursOf(links.connector().table(), links.rank()));
  if (members.size() < 2) return nullptr;
  return NodeTeam::Form(links, std::move(members), spins, deadline);
}

}  // namespace tutti::comm
