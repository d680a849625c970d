// Declares the commands `tutti cluster …`, which create, change, check and delete a Slurm cluster
// on machines that ssh reaches. They need no service.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "platform/client/commands/commands.h"
#include "platform/cluster/description.h"

namespace tutti::client {

struct ClusterOptions {
  std::string name = "tutti";
  std::vector<std::string> hosts;
  std::string controller;  // empty: the first of the hosts
  std::string user, ssh_config;
  std::string accounting;  // mysql://…, or @FILE with that
  // Nodes mount these, as --mount says it (nfs_mount.h); empty means as before.
  std::vector<std::string> mounts;
  bool dry_run = false;  // say what would be done
  bool force = false;    // also while the cluster has jobs, or a machine does not answer
  int wait_seconds = 3600;
  std::vector<std::function<void(cluster::Autoscale&)>> scale;  // changes to the autoscale settings
  bool scale_off = false;                                       // switch autoscale off
  // A host whose hardware the nodes of autoscale have; empty: as before, at first the first node.
  std::string like;
  Format format = Format::kTable;
};
using ClusterCommand = absl::StatusOr<ExitCode> (*)(Context&, const ClusterOptions&);
// Runs `command` under the lock of that cluster in this home, so that no other command changes the
// cluster meanwhile. A dry run needs no lock.
absl::StatusOr<ExitCode> ChangeCluster(Context& context, const ClusterOptions& options,
                                       ClusterCommand command);
absl::StatusOr<ExitCode> ClusterCreate(Context& context, const ClusterOptions& options);
absl::StatusOr<ExitCode> ClusterAddNode(Context& context, const ClusterOptions& options);
absl::StatusOr<ExitCode> ClusterRemoveNode(Context& context, const ClusterOptions& options);
absl::StatusOr<ExitCode> ClusterUpgrade(Context& context, const ClusterOptions& options);
absl::StatusOr<ExitCode> ClusterDelete(Context& context, const ClusterOptions& options);
absl::StatusOr<ExitCode> ClusterStatus(Context& context, const ClusterOptions& options);
absl::StatusOr<ExitCode> ClusterCheck(Context& context, const ClusterOptions& options);
absl::StatusOr<ExitCode> ClusterAutoscale(Context& context, const ClusterOptions& options);

// Runs a command on a node of that cluster by ssh, in place of this process; without one, a shell.
absl::StatusOr<ExitCode> NodeExec(Context& context, const std::string& cluster_name,
                                  const std::string& node, const std::vector<std::string>& command);

}  // namespace tutti::client
