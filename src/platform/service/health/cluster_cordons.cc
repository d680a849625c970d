#include "platform/service/health/cluster_cordons.h"

namespace tutti::service {

bool ClusterCordons::Add(const std::string& compute, const std::string& node,
                         const std::string& reason, absl::Duration now) {
  return cordons_.insert_or_assign({compute, node}, Cordon{reason, now + kLimit}).second;
}

bool ClusterCordons::Remove(absl::string_view compute, absl::string_view node) {
  return cordons_.erase({std::string(compute), std::string(node)}) > 0;
}

void ClusterCordons::Expire(absl::Duration now) {
  std::erase_if(cordons_, [now](const auto& entry) { return entry.second.until <= now; });
}

const std::string* ClusterCordons::Find(const std::string& compute, const std::string& node) const {
  const auto found = cordons_.find({compute, node});
  return found == cordons_.end() ? nullptr : &found->second.reason;
}

std::vector<std::string> ClusterCordons::NodesOf(const std::string& compute) const {
  std::vector<std::string> nodes;
  for (auto at = cordons_.lower_bound({compute, ""});
       at != cordons_.end() && at->first.first == compute; ++at) {
    nodes.push_back(at->first.second);
  }
  return nodes;
}

}  // namespace tutti::service
