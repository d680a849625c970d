// ClusterCordons holds the nodes of clusters that tutti's launchers have found to be ill, before,
// after or during a job: for a while the jobs of this service avoid them. Slurm's own states of its
// nodes are its administrators'. In memory alone, since each launcher looks at its node anew. Not
// thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tutti::service {

class ClusterCordons {
 public:
  // How long a node is avoided; then a job's launcher looks at it again.
  static constexpr absl::Duration kLimit = absl::Minutes(15);

  struct Cordon {
    std::string reason;
    absl::Duration until;  // since boot
  };

  // Adds the node's cordon, or renews it. True if it is a new one.
  bool Add(const std::string& compute, const std::string& node, const std::string& reason,
           absl::Duration now);
  // Takes the cordon off; false if there is none.
  bool Remove(absl::string_view compute, absl::string_view node);
  // Forgets those that are over.
  void Expire(absl::Duration now);

  // Returns the reason of a node's cordon; null if it has none.
  const std::string* Find(const std::string& compute, const std::string& node) const;
  std::vector<std::string> NodesOf(const std::string& compute) const;
  // The keys are a compute and a node.
  const std::map<std::pair<std::string, std::string>, Cordon>& all() const { return cordons_; }

 private:
  std::map<std::pair<std::string, std::string>, Cordon> cordons_;
};

}  // namespace tutti::service
