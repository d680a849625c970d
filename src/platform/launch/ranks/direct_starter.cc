#include "platform/launch/ranks/direct_starter.h"

#include <memory>
#include <utility>

#include "base/status.h"
#include "platform/launch/ranks/rank_process.h"

namespace tutti::launch {

absl::Status StartOwnRank(const StartContext& context, int local_rank, const NodeFacts& facts) {
  TUTTI_ASSIGN_OR_RETURN(auto rank, RankProcess::Start(context.plan, local_rank, context.command,
                                                       facts, context.limit, context.spool));
  context.ranks->Add(std::move(rank));
  return absl::OkStatus();
}

absl::Status DirectStarter::Begin() {
  for (int i = 0; i < context_.plan.node().process_count; ++i) {
    TUTTI_RETURN_IF_ERROR(StartOwnRank(context_, i, context_.facts));
  }
  return absl::OkStatus();
}

}  // namespace tutti::launch
