#include "runtime/comm/collective/node/form.h"

#include <utility>
#include <vector>

#include "base/status.h"

namespace tutti::comm {

absl::StatusOr<std::unique_ptr<NodeTeam>> FormNodeTeam(Links& links, int spins,
                                                       base::Deadline deadline) {
  const std::vector<Hello>& ranks = links.connector().table().ranks;
  std::vector<int> members;
  for (int rank = 0; rank < links.size(); ++rank) {
    TUTTI_ASSIGN_OR_RETURN(const bool shares, SharesMemory(ranks[links.rank()], ranks[rank]));
    if (shares || rank == links.rank()) members.push_back(rank);
  }
  if (members.size() < 2) return nullptr;
  return NodeTeam::Form(links, std::move(members), spins, deadline);
}

}  // namespace tutti::comm
