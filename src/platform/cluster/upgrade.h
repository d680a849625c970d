// Plans the upgrade of a cluster's packages: which newer ones each host could have, and the order
// in which they are put in place. Asking a host changes nothing there but apt's lists.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/cluster/description.h"
#include "platform/cluster/host_facts.h"
#include "platform/cluster/plan.h"

namespace tutti::cluster {

struct PackageVersions {
  std::string installed;
  std::string newer;  // empty: there is none
  const std::string& after() const { return newer.empty() ? installed : newer; }
};

struct HostPackages {
  std::string host;
  std::map<std::string, PackageVersions> packages;  // of munge and Slurm, those that are installed
  std::set<std::string> outdated;  // daemons that run a program which has been replaced since
};

// Runs as ProbeScript() does. A host without apt tells no package.
std::string PackagesScript();

// Reads what a host said; InvalidArgument names the host and the line that is not what the script
// prints.
absl::StatusOr<HostPackages> ReadPackages(const std::string& host, absl::string_view text);

// Newer daemons may talk to older ones in one order alone: database, controller, nodes. All is
// fetched before the first of them ends, and jobs that run go on. No step where there is nothing
// newer. FailedPrecondition: a host has no apt or would be ahead of its controller, or the
// controller would not read what it keeps now.
absl::StatusOr<std::vector<Step>> PlanUpgrade(const Description& wanted,
                                              const std::vector<HostFacts>& facts,
                                              const std::vector<HostPackages>& packages);

// Returns "from 22.05 to 24.11" if the controller comes to another major release, which may not
// read what this one keeps of its jobs; or "".
std::string MajorChange(const Description& wanted, const std::vector<HostPackages>& packages);

}  // namespace tutti::cluster
