#include "platform/launch/data/gang_peers.h"

#include <set>
#include <string>

namespace tutti::launch {

std::optional<storage::Peers> GangPeers(const spec::LaunchPlan& plan) {
  const bool have_one_folder = !plan.boot_id.empty() || !plan.shared_folder.empty();
  if (plan.nodes.size() < 2 || have_one_folder || plan.job_token.empty()) return std::nullopt;
  storage::Peers peers{
      .node = plan.node_index, .port = plan.master_port + 1, .token = plan.job_token};
  for (const spec::PlanNode& node : plan.nodes) peers.addresses.push_back(node.address);
  // Two of one machine cannot listen at one port.
  const std::set<std::string> different(peers.addresses.begin(), peers.addresses.end());
  if (different.size() < peers.addresses.size()) return std::nullopt;
  return peers;
}

}  // namespace tutti::launch
