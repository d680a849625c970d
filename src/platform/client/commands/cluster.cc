#include "platform/client/commands/cluster.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/client/commands/cluster_converge.h"
#include "platform/cluster/configuration.h"
#include "platform/cluster/daemons.h"
#include "platform/cluster/plan.h"
#include "platform/cluster/work.h"

namespace tutti::client {
namespace {

using cluster::Description;
using cluster::HostFacts;

constexpr absl::Duration kAsks = absl::Seconds(30);
constexpr absl::Duration kJobsEnd = absl::Seconds(90);  // Slurm's KillWait, and some
constexpr size_t kMungeKeyBytes = 64;

bool Contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

absl::Status CheckHosts(const ClusterOptions& options) {
  TUTTI_RETURN_IF_ERROR(cluster::CheckClusterName(options.name));
  for (size_t i = 0; i < options.hosts.size(); ++i) {
    TUTTI_RETURN_IF_ERROR(cluster::CheckHostName(options.hosts[i]));
    for (size_t j = 0; j < i; ++j) {
      if (options.hosts[i] != options.hosts[j]) continue;
      return absl::InvalidArgumentError(absl::StrCat(options.hosts[i], " is named twice"));
    }
  }
  if (options.controller.empty()) return absl::OkStatus();
  return cluster::CheckHostName(options.controller);
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
  return description;
}

// FailedPrecondition with the number of its jobs, and what else there is to say.
absl::Status CheckQueueIsEmpty(cluster::Remote& remote, const Description& description,
                               absl::string_view else_say) {
  TUTTI_ASSIGN_OR_RETURN(
      const std::string jobs,
      remote.Run(description.controller, "squeue -h -o %A", base::Deadline::After(kAsks)));
  if (jobs.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(std::count(jobs.begin(), jobs.end(), '\n'), " jobs are in its queue", else_say));
}

// Drained, and without jobs.
absl::Status Drain(Context& context, cluster::Remote& remote, const Description& description,
                   const std::string& node, int wait_seconds) {
  TUTTI_RETURN_IF_ERROR(
      remote
          .Run(description.controller, cluster::DrainText(node, wait_seconds),
               base::Deadline::After(absl::Seconds(wait_seconds) + absl::Minutes(5)))
          .status());
  LinesOn(context)(node, "drain it and wait for its jobs", "done");
  return absl::OkStatus();
}

absl::Status RemoveNode(Context& context, cluster::Remote& remote, const Description& description,
                        const std::string& host, const ClusterOptions& options) {
  const auto facts = cluster::Probe(remote, {host});
  if (absl::IsUnavailable(facts.status()) && options.force) {
    context.err << "note: " << facts.status().message() << "; what it has stays there\n";
    return absl::OkStatus();
  }
  if (!facts.ok()) {
    return absl::Status(
        facts.status().code(),
        absl::StrCat(facts.status().message(), "; --force takes a machine out that is gone"));
  }
  const auto removal = cluster::PlanRemoval(description, *facts);
  if (!removal.ok() && options.force) {
    context.err << "note: " << removal.status().message() << " there\n";
    return absl::OkStatus();
  }
  if (!removal.ok()) {
    return absl::Status(
        removal.status().code(),
        absl::StrCat(removal.status().message(), "; --force takes it out and leaves it as it is"));
  }
  TUTTI_RETURN_IF_ERROR(
      Drain(context, remote, description, facts->front().name, options.wait_seconds));
  return cluster::CarryOut(remote, *removal, LinesOn(context));
}

absl::Status CheckMayLeave(const Description& description, const ClusterOptions& options) {
  for (const std::string& host : options.hosts) {
    if (host == description.controller) {
      return absl::InvalidArgumentError(
          absl::StrCat(host, " is the controller; `tutti cluster delete` ends the cluster"));
    }
    if (!Contains(description.nodes, host)) {
      return absl::NotFoundError(absl::StrCat(host, " is no node of cluster ", options.name,
                                              "; its nodes are ",
                                              absl::StrJoin(description.nodes, ", ")));
    }
  }
  return absl::OkStatus();
}

// With its queue; what does not end in time is told, and stays.
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

// Of its hosts; with `force` of those that can be reached.
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

absl::StatusOr<ExitCode> ClusterRemoveNode(Context& context, const ClusterOptions& options) {
  TUTTI_RETURN_IF_ERROR(CheckHosts(options));
  TUTTI_ASSIGN_OR_RETURN(Description description,
                         cluster::ReadDescription(context.home, options.name));
  cluster::SshRemote remote(description.user, description.ssh_config);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<HostFacts> controller,
                         cluster::Probe(remote, {description.controller}));
  TUTTI_RETURN_IF_ERROR(cluster::CheckOwned(description, controller));
  TUTTI_RETURN_IF_ERROR(CheckMayLeave(description, options));
  absl::Status removed;
  for (const std::string& host : options.hosts) {
    removed = RemoveNode(context, remote, description, host, options);
    if (!removed.ok()) break;
    std::erase(description.nodes, host);
  }
  // Those that are out by now are out, whatever happened to the next.
  auto code = Converge(context, remote, description, {}, false);
  TUTTI_RETURN_IF_ERROR(removed);
  return code;
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
  TUTTI_RETURN_IF_ERROR(cluster::CarryOut(remote, steps, LinesOn(context)));
  TUTTI_RETURN_IF_ERROR(cluster::RemoveDescription(context.home, options.name));
  return ExitCode::kOk;
}

}  // namespace tutti::client
