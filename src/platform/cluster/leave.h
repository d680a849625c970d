// Plans how nodes leave a cluster: a pure function. All that stands against it is said before the
// first of them is changed.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "platform/cluster/description.h"
#include "platform/cluster/host_facts.h"
#include "platform/cluster/plan.h"

namespace tutti::cluster {

struct Leaving {
  std::string host;
  std::string name;           // Slurm's; empty: the host stays as it is, for the reason in `note`
  std::vector<Step> removal;  // once it has no jobs
  std::string note;
};

// Plans the leaving; `facts`: of the description's hosts, in their order. With `force` a host that
// cannot be reached or is not this cluster's leaves the description alone. Unavailable: others
// cannot be reached either, which would leave the rest as they are; FailedPrecondition: errors of
// MakePlan for the rest.
absl::StatusOr<std::vector<Leaving>> PlanLeaving(
    const Description& description, const std::vector<std::string>& leaving,
    const std::vector<absl::StatusOr<HostFacts>>& facts, bool force);

// Returns what takes all of these out, who cannot be reached.
std::string RemovalOfGone(const std::vector<std::string>& hosts);

}  // namespace tutti::cluster
