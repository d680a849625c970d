#include "platform/client/commands/cluster/cluster_converge.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "platform/client/text/columns.h"
#include "platform/cluster/configuration.h"
#include "platform/cluster/daemons.h"
#include "platform/cluster/plan.h"
#include "platform/cluster/power_program.h"

namespace tutti::client {
namespace {

using cluster::HostFacts;

constexpr absl::Duration kComesUp = absl::Seconds(90);
constexpr absl::Duration kAsks = absl::Seconds(30);
constexpr absl::Duration kSwitchedOff = absl::Minutes(15);

}  // namespace

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

absl::Status CheckQueueIsEmpty(cluster::Remote& remote, const cluster::Description& description,
                               absl::string_view else_say) {
  TUTTI_ASSIGN_OR_RETURN(
      const std::string jobs,
      remote.Run(description.controller, "squeue -h -o %A", base::Deadline::After(kAsks)));
  if (jobs.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(std::count(jobs.begin(), jobs.end(), '\n'), " jobs are in its queue", else_say));
}

cluster::Report LinesOn(Context& context) {
  return [&context](const std::string& host, const std::string& what, const std::string& how) {
    context.out << PadRight(host, 12) << " " << PadRight(what, 58) << " " << how << std::endl;
  };
}

ExitCode SayWhatWouldBeDone(Context& context, const std::vector<cluster::Step>& steps) {
  for (const cluster::Step& step : steps) LinesOn(context)(step.host, step.what, "");
  if (steps.empty()) context.out << "There is nothing to do.\n";
  return ExitCode::kOk;
}

absl::Status CheckConverge(cluster::Remote& remote, const cluster::Description& description) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<HostFacts> facts,
                         cluster::Probe(remote, description.Hosts()));
  return cluster::MakePlan(description, facts).status();
}

absl::StatusOr<ExitCode> Converge(Context& context, cluster::Remote& remote,
                                  const cluster::Description& description,
                                  const std::vector<std::string>& tried, bool dry_run,
                                  bool changed) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<HostFacts> facts,
                         cluster::Probe(remote, description.Hosts()));
  TUTTI_ASSIGN_OR_RETURN(const cluster::Plan plan, cluster::MakePlan(description, facts));
  for (const std::string& note : plan.notes) context.err << "note: " << note << std::endl;
  if (dry_run) return SayWhatWouldBeDone(context, plan.steps);
  TUTTI_RETURN_IF_ERROR(cluster::WriteDescription(context.home, description));
  TUTTI_RETURN_IF_ERROR(cluster::CarryOut(remote, plan.steps, LinesOn(context)));
  TUTTI_ASSIGN_OR_RETURN(const auto aside, cluster::AwaitNodes(remote, description, facts,
                                                               base::Deadline::After(kComesUp)));
  for (const auto& [node, why] : aside) {
    context.err << "note: " << node << " takes no new jobs: " << why << std::endl;
  }
  if (plan.steps.empty() && !changed) {
    context.out << "There is nothing to do: " << description.nodes.size()
                << " nodes are as they should be.\n";
    return ExitCode::kOk;
  }
  std::vector<HostFacts> nodes;
  for (const std::string& host : tried) {
    const HostFacts& node = *cluster::FactsOf(facts, host);
    if (!aside.contains(node.name)) nodes.push_back(node);
  }
  if (nodes.empty()) return ExitCode::kOk;
  const absl::StatusOr<int> answered = cluster::TryNodes(remote, description.controller, nodes);
  const bool busy = absl::StrContains(answered.status().message(), "nodes are busy");
  if (!answered.ok() && !busy) return answered.status();
  LinesOn(context)(description.controller, "srun hostname",
                   busy
                       ? "not tried: jobs hold the nodes"
                       : absl::StrCat(*answered, *answered == 1 ? " node" : " nodes", " answered"));
  return ExitCode::kOk;
}

absl::Status Drain(Context& context, cluster::Remote& remote, const std::string& controller,
                   const std::vector<std::string>& nodes, int wait_seconds) {
  TUTTI_RETURN_IF_ERROR(
      remote
          .Run(controller, cluster::DrainText(absl::StrJoin(nodes, ","), wait_seconds),
               base::Deadline::After(absl::Seconds(wait_seconds) + absl::Minutes(5)))
          .status());
  for (const std::string& node : nodes) {
    LinesOn(context)(node, "drain it and wait for its jobs", "done");
  }
  return absl::OkStatus();
}

absl::Status SwitchOff(Context& context, cluster::Remote& remote, const std::string& controller,
                       const std::vector<std::string>& nodes, bool force) {
  const auto off = remote.Run(controller, cluster::SwitchOffText(nodes, force),
                              base::Deadline::After(kSwitchedOff));
  if (!off.ok() && !force) {
    return absl::Status(off.status().code(),
                        absl::StrCat(off.status().message(), "; --force leaves them on"));
  }
  if (!off.ok()) {
    context.err << "note: " << off.status().message() << "; they may stay on\n";
    return absl::OkStatus();
  }
  for (const absl::string_view node : absl::StrSplit(*off, '\n', absl::SkipEmpty())) {
    LinesOn(context)(std::string(node), "switch it off", "done");
  }
  return absl::OkStatus();
}

}  // namespace tutti::client
