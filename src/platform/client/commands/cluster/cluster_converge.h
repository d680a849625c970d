// Declares the steps that several commands of `tutti cluster` share: checks of the request,
// Converge, which makes the hosts what the description says, and what lets nodes leave: Drain and
// SwitchOff.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "platform/client/commands/cluster/cluster.h"
#include "platform/cluster/description.h"
#include "platform/cluster/remote.h"
#include "platform/cluster/work.h"

namespace tutti::client {

// Checks the hosts' names; InvalidArgument unless they are valid and each is given once.
absl::Status CheckHosts(const ClusterOptions& options);

// Checks that no job waits or runs; FailedPrecondition if the cluster has jobs: their number,
// followed by `else_say`.
absl::Status CheckQueueIsEmpty(cluster::Remote& remote, const cluster::Description& description,
                               absl::string_view else_say);

// Prints a line for each step that was done.
cluster::Report LinesOn(Context& context);

ExitCode SayWhatWouldBeDone(Context& context, const std::vector<cluster::Step>& steps);

// Returns what Converge would refuse before it changed anything.
absl::Status CheckConverge(cluster::Remote& remote, const cluster::Description& description);

// Makes the hosts what the description says, keeps it, and shows that jobs run on `tried`. With
// `dry_run` it says what it would do. `changed`: something was done to them just before.
absl::StatusOr<ExitCode> Converge(Context& context, cluster::Remote& remote,
                                  const cluster::Description& description,
                                  const std::vector<std::string>& tried, bool dry_run,
                                  bool changed = false);

// Has Slurm give the nodes no more jobs, and waits up to `wait_seconds` until they have none.
absl::Status Drain(Context& context, cluster::Remote& remote, const std::string& controller,
                   const std::vector<std::string>& nodes, int wait_seconds);

// Switches nodes of autoscale off by the site's command. With `force` their jobs are requeued, if
// they may be, or ended; a node that stays on is reported and is no error.
absl::Status SwitchOff(Context& context, cluster::Remote& remote, const std::string& controller,
                       const std::vector<std::string>& nodes, bool force);

}  // namespace tutti::client
