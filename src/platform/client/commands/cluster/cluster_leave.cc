#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/client/commands/cluster/cluster_converge.h"
#include "platform/cluster/configuration.h"
#include "platform/cluster/daemons.h"
#include "platform/cluster/leave.h"
#include "platform/cluster/plan.h"
#include "platform/cluster/work.h"

namespace tutti::client {
namespace {

using cluster::Description;
using cluster::HostFacts;

constexpr absl::Duration kJobsEnd = absl::Seconds(90);  // Slurm's KillWait, and some

absl::Status RemoveNode(Context& context, cluster::Remote& remote, const Description& description,
                        const cluster::Leaving& node, const ClusterOptions& options) {
  if (node.name.empty()) {
    context.err << "note: " << node.note << "\n";
    return absl::OkStatus();
  }
  TUTTI_RETURN_IF_ERROR(
      Drain(context, remote, description.controller, {node.name}, options.wait_seconds));
  const absl::Status removed = cluster::CarryOut(remote, node.removal, LinesOn(context));
  if (!options.force || !absl::IsUnavailable(removed)) return removed;
  context.err << "note: " << removed.message() << "; what it has stays there\n";
  return absl::OkStatus();
}

// Ends the jobs of the cluster's queue. Jobs that do not end in time are reported, and go on.
absl::Status EndJobs(Context& context, cluster::Remote& remote, const Description& description) {
  const absl::Status ended = remote
                                 .Run(description.controller, cluster::EndJobsText(kJobsEnd),
                                      base::Deadline::After(kJobsEnd + absl::Minutes(1)))
                                 .status();
  if (absl::IsAborted(ended)) {
    context.err << "note: " << ended.message() << "; look for their processes on the nodes\n";
    return absl::OkStatus();
  }
  return ended;
}

// Probes the cluster's hosts. With `force`, a host that cannot be reached is left out with a note;
// otherwise it is an error.
absl::StatusOr<std::vector<HostFacts>> ProbeToDelete(Context& context, cluster::Remote& remote,
                                                     const Description& description, bool force) {
  std::vector<HostFacts> facts;
  for (const absl::StatusOr<HostFacts>& host : cluster::ProbeEach(remote, description.Hosts())) {
    if (host.ok()) {
      facts.push_back(*host);
    } else if (force && absl::IsUnavailable(host.status())) {
      context.err << "note: " << host.status().message() << "; what it has stays there\n";
    } else {
      return absl::Status(host.status().code(),
                          absl::StrCat(host.status().message(),
                                       "; --force leaves a machine that is gone as it is"));
    }
  }
  return facts;
}

}  // namespace

absl::StatusOr<ExitCode> ClusterRemoveNode(Context& context, const ClusterOptions& options) {
  TUTTI_RETURN_IF_ERROR(CheckHosts(options));
  TUTTI_ASSIGN_OR_RETURN(Description description,
                         cluster::ReadDescription(context.home, options.name));
  cluster::SshRemote remote(description.user, description.ssh_config);
  TUTTI_ASSIGN_OR_RETURN(
      const std::vector<cluster::Leaving> leaving,
      cluster::PlanLeaving(description, options.hosts,
                           cluster::ProbeEach(remote, description.Hosts()), options.force));
  absl::Status removed;
  for (const cluster::Leaving& node : leaving) {
    removed = RemoveNode(context, remote, description, node, options);
    if (!removed.ok() && &node == &leaving.front()) return removed;
    if (!removed.ok()) break;
    std::erase(description.nodes, node.host);
  }
  // The nodes that have left by now stay out, whatever happened to the next one.
  auto code = Converge(context, remote, description, {}, false);
  TUTTI_RETURN_IF_ERROR(removed);
  return code;
}

absl::StatusOr<ExitCode> ClusterDelete(Context& context, const ClusterOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const Description description,
                         cluster::ReadDescription(context.home, options.name));
  cluster::SshRemote remote(description.user, description.ssh_config);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<HostFacts> facts,
                         ProbeToDelete(context, remote, description, options.force));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<cluster::Step> steps,
                         cluster::PlanRemoval(description, facts));
  const HostFacts* controller = cluster::FactsOf(facts, description.controller);
  if (controller == nullptr) {
    context.err << "note: jobs that run on the other machines run on\n";
  } else if (controller->running.contains("slurmctld")) {
    TUTTI_RETURN_IF_ERROR(
        options.force ? EndJobs(context, remote, description)
                      : CheckQueueIsEmpty(remote, description, "; --force ends them with it"));
  }
  if (description.autoscale && controller != nullptr) {
    TUTTI_RETURN_IF_ERROR(SwitchOff(context, remote, description.controller,
                                    description.autoscale->nodes, options.force));
  } else if (description.autoscale) {
    context.err << "note: nodes of autoscale that are on stay on\n";
  }
  TUTTI_RETURN_IF_ERROR(cluster::CarryOut(remote, steps, LinesOn(context)));
  TUTTI_RETURN_IF_ERROR(cluster::RemoveDescription(context.home, options.name));
  return ExitCode::kOk;
}

}  // namespace tutti::client
