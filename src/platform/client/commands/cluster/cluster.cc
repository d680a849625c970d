#include "platform/client/commands/cluster/cluster.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/client/commands/cluster/cluster_converge.h"
#include "platform/cluster/mounts/nfs_mount.h"
#include "platform/cluster/plan.h"
#include "platform/cluster/work.h"

namespace tutti::client {
namespace {

using cluster::Description;
using cluster::HostFacts;

constexpr size_t kMungeKeyBytes = 64;

bool Contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

absl::StatusOr<cluster::AccountingDatabase> DatabaseOf(const std::string& option) {
  if (!absl::StartsWith(option, "@")) return cluster::ReadAccountingDatabase(option);
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(option.substr(1), 4096));
  return cluster::ReadAccountingDatabase(std::string(absl::StripAsciiWhitespace(text)));
}

// The cluster that is known by that name, changed as the options say; or a new one.
absl::StatusOr<Description> DescriptionOf(const Context& context, const ClusterOptions& options) {
  TUTTI_RETURN_IF_ERROR(CheckHosts(options));
  Description description;
  const auto known = cluster::ReadDescription(context.home, options.name);
  if (known.ok()) {
    description = *known;
  } else if (!absl::IsNotFound(known.status())) {
    return known.status();
  } else {
    description.name = options.name;
    description.munge_key = absl::StrCat(base::RandomHex(kMungeKeyBytes), "\n");
  }
  for (const std::string& node : description.nodes) {
    if (Contains(options.hosts, node)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(node,
                     " is a node of this cluster and not among --hosts; `tutti cluster "
                     "remove-node ",
                     node, "` takes it out"));
  }
  for (const std::string& host : options.hosts) {
    if (!Contains(description.nodes, host)) description.nodes.push_back(host);
  }
  if (!options.controller.empty()) description.controller = options.controller;
  if (description.controller.empty()) description.controller = options.hosts.front();
  if (known.ok() && known->controller != description.controller) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the controller is ", known->controller, "; it cannot move: give --controller ",
        known->controller, ", or delete the cluster first"));
  }
  if (!options.user.empty()) description.user = options.user;
  if (!options.ssh_config.empty()) {
    description.ssh_config = std::filesystem::absolute(options.ssh_config).string();
  }
  if (!options.accounting.empty()) {
    TUTTI_ASSIGN_OR_RETURN(description.accounting, DatabaseOf(options.accounting));
  }
  if (!options.mounts.empty()) {
    TUTTI_ASSIGN_OR_RETURN(const spec::FileServers servers, spec::ReadFileServers(context.home));
    TUTTI_ASSIGN_OR_RETURN(description.mounts, cluster::ReadMounts(options.mounts, servers));
  }
  return description;
}

}  // namespace

absl::StatusOr<ExitCode> ChangeCluster(Context& context, const ClusterOptions& options,
                                       ClusterCommand command) {
  if (options.dry_run) return command(context, options);
  auto lock = cluster::LockDescription(context.home, options.name, /*cancelled=*/true);
  if (absl::IsCancelled(lock.status())) {
    context.err << "note: another command changes this cluster; waits for its end" << std::endl;
    lock = cluster::LockDescription(context.home, options.name, /*cancelled=*/false);
  }
  TUTTI_RETURN_IF_ERROR(lock.status());
  return command(context, options);
}

absl::StatusOr<ExitCode> ClusterCreate(Context& context, const ClusterOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const Description description, DescriptionOf(context, options));
  cluster::SshRemote remote(description.user, description.ssh_config);
  return Converge(context, remote, description, description.nodes, options.dry_run);
}

absl::StatusOr<ExitCode> ClusterAddNode(Context& context, const ClusterOptions& options) {
  TUTTI_RETURN_IF_ERROR(CheckHosts(options));
  TUTTI_ASSIGN_OR_RETURN(Description description,
                         cluster::ReadDescription(context.home, options.name));
  for (const std::string& host : options.hosts) {
    if (!Contains(description.nodes, host)) description.nodes.push_back(host);
  }
  cluster::SshRemote remote(description.user, description.ssh_config);
  return Converge(context, remote, description, options.hosts, options.dry_run);
}

absl::StatusOr<ExitCode> ClusterUpgrade(Context& context, const ClusterOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const Description description,
                         cluster::ReadDescription(context.home, options.name));
  cluster::SshRemote remote(description.user, description.ssh_config);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<HostFacts> facts,
                         cluster::Probe(remote, description.Hosts()));
  TUTTI_RETURN_IF_ERROR(cluster::CheckOwned(description, facts));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<cluster::HostPackages> packages,
                         cluster::ProbePackages(remote, description.Hosts()));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<cluster::Step> steps,
                         cluster::PlanUpgrade(description, facts, packages));
  const std::string change = cluster::MajorChange(description, packages);
  if (!options.force && !change.empty()) {
    TUTTI_RETURN_IF_ERROR(
        CheckQueueIsEmpty(remote, description,
                          absl::StrCat(" and may not outlive the change of Slurm ", change,
                                       "; wait for them, or go on with --force")));
  }
  if (description.autoscale) {
    context.err << "note: nodes of autoscale have what their image has; make it anew\n";
  }
  if (options.dry_run) return SayWhatWouldBeDone(context, steps);
  TUTTI_RETURN_IF_ERROR(cluster::CarryOut(remote, steps, LinesOn(context)));
  return Converge(context, remote, description, description.nodes, false, !steps.empty());
}

}  // namespace tutti::client
