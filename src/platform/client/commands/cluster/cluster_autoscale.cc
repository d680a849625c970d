#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/client/commands/cluster/cluster.h"
#include "platform/client/commands/cluster/cluster_converge.h"
#include "platform/cluster/configuration.h"
#include "platform/cluster/power_program.h"

namespace tutti::client {
namespace {

using cluster::Autoscale;
using cluster::Description;

absl::Status CheckScale(const Description& description, const Autoscale& scale) {
  if (scale.nodes.empty()) {
    return absl::InvalidArgumentError(
        "this cluster has no autoscale: --nodes names all that there may be");
  }
  for (const std::string& node : scale.nodes) {
    TUTTI_RETURN_IF_ERROR(cluster::CheckHostName(node));
    for (const std::string& fixed : description.Hosts()) {
      if (node != fixed) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          node, " is there for good; `tutti cluster remove-node ", node, "` takes it out first"));
    }
  }
  if (scale.resume.empty() || scale.suspend.empty()) {
    return absl::InvalidArgumentError(
        "--resume and --suspend name the commands that switch node $NODE on and off");
  }
  if (scale.min > static_cast<int>(scale.nodes.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("--min ", scale.min, " of ", scale.nodes.size(), " nodes cannot be"));
  }
  return absl::OkStatus();
}

// Returns the settings with the hardware of `like`, which runs now.
absl::StatusOr<Autoscale> ScaleLike(cluster::Remote& remote, Autoscale scale,
                                    const std::string& like) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<cluster::HostFacts> facts,
                         cluster::Probe(remote, {like}));
  scale.sockets = facts.front().sockets;
  scale.cores_per_socket = facts.front().cores_per_socket;
  scale.threads_per_core = facts.front().threads_per_core;
  scale.memory_mib = facts.front().memory_mib;
  scale.gpus = facts.front().gpus;
  scale.cgroup = cluster::UsableCgroup(facts.front());
  return scale;
}

// Returns the known settings, changed as the options say.
absl::StatusOr<Autoscale> ScaleOf(cluster::Remote& remote, const Description& known,
                                  const ClusterOptions& options) {
  Autoscale scale = known.autoscale.value_or(Autoscale());
  for (const auto& change : options.scale) change(scale);
  TUTTI_RETURN_IF_ERROR(CheckScale(known, scale));
  if (!options.like.empty()) return ScaleLike(remote, scale, options.like);
  if (known.autoscale) return scale;
  if (!known.nodes.empty()) return ScaleLike(remote, scale, known.nodes.front());
  return absl::InvalidArgumentError(
      "this cluster has no fixed node: --like HOST names one with the hardware of --nodes");
}

// Slurm would forget them with their jobs, and nobody would switch them off any more.
absl::Status TakeAway(Context& context, cluster::Remote& remote, const Description& rest,
                      const std::vector<std::string>& nodes, const ClusterOptions& options) {
  if (options.dry_run) {
    for (const std::string& node : nodes) {
      LinesOn(context)(node, "drain it, wait for its jobs, switch it off", "");
    }
    return absl::OkStatus();
  }
  TUTTI_RETURN_IF_ERROR(CheckConverge(remote, rest));
  if (!options.force) {
    TUTTI_RETURN_IF_ERROR(Drain(context, remote, rest.controller, nodes, options.wait_seconds));
  }
  return SwitchOff(context, remote, rest.controller, nodes, options.force);
}

}  // namespace

absl::StatusOr<ExitCode> ClusterAutoscale(Context& context, const ClusterOptions& options) {
  if (options.scale_off && !(options.scale.empty() && options.like.empty())) {
    return absl::InvalidArgumentError("--off ends autoscaling: it goes with no setting of it");
  }
  TUTTI_ASSIGN_OR_RETURN(Description description,
                         cluster::ReadDescription(context.home, options.name));
  cluster::SshRemote remote(description.user, description.ssh_config);
  std::vector<std::string> leaving;
  if (description.autoscale) leaving = description.autoscale->nodes;
  if (options.scale_off) {
    description.autoscale.reset();
  } else {
    TUTTI_ASSIGN_OR_RETURN(description.autoscale, ScaleOf(remote, description, options));
    for (const std::string& node : description.autoscale->nodes) std::erase(leaving, node);
  }
  if (!leaving.empty()) {
    TUTTI_RETURN_IF_ERROR(TakeAway(context, remote, description, leaving, options));
  }
  TUTTI_ASSIGN_OR_RETURN(const ExitCode code,
                         Converge(context, remote, description, {}, options.dry_run));
  if (description.autoscale && !options.dry_run) {
    TUTTI_RETURN_IF_ERROR(remote
                              .Run(description.controller, cluster::KeepText(),
                                   base::Deadline::After(absl::Minutes(1)))
                              .status());
  }
  return code;
}

}  // namespace tutti::client
