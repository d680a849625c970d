#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "platform/client/commands/cluster/cluster.h"
#include "platform/cluster/description.h"
#include "platform/cluster/remote.h"
#include "platform/cluster/work.h"

namespace tutti::client {
namespace {

// Returns where ssh finds it: a host as `cluster create` was told of it, or a node by Slurm's name.
absl::StatusOr<std::string> HostOf(const cluster::Description& description,
                                   const std::string& node) {
  const std::vector<std::string> hosts = description.Hosts();
  if (std::find(hosts.begin(), hosts.end(), node) != hosts.end()) return node;
  cluster::SshRemote remote(description.user, description.ssh_config);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<cluster::NodeState> nodes,
                         cluster::AskNodeStates(remote, description.controller));
  std::vector<std::string> names;
  for (const cluster::NodeState& state : nodes) {
    if (state.name == node) return state.address;
    names.push_back(state.name);
  }
  return absl::NotFoundError(absl::StrCat(node, " is no node of cluster ", description.name,
                                          "; its nodes are ", absl::StrJoin(names, ", ")));
}

}  // namespace

absl::StatusOr<ExitCode> NodeExec(Context& context, const std::string& cluster_name,
                                  const std::string& node,
                                  const std::vector<std::string>& command) {
  TUTTI_ASSIGN_OR_RETURN(const cluster::Description description,
                         cluster::ReadDescription(context.home, cluster_name));
  TUTTI_ASSIGN_OR_RETURN(const std::string host, HostOf(description, node));
  const bool terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  std::vector<std::string> words =
      cluster::SshSession(description.user, description.ssh_config, host, command, terminal);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  context.out.flush();
  ::execvp(pointers.front(), pointers.data());
  return base::ErrnoStatus("run ssh");
}

}  // namespace tutti::client
