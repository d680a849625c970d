// Gives a launcher the view of its virtual node: the node's processors, a host name of its own, and
// an /etc/hosts in which the nodes' names lead to their addresses. Nothing of it outlives the
// launcher and what it starts, and nothing of it is seen outside.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::engine {

// How much of it this process is permitted to do.
enum class Isolation {
  kFull,           // host name and hosts file, by namespaces, as root
  kUserNamespace,  // the same inside of a user namespace of our own
  kNone,           // processors only
};

struct NodeSettings {
  std::string host_name;
  std::vector<int> cores;
  std::filesystem::path hosts_file;
};

// Returns a function for base::ChildOptions::before_exec. It is async-signal-safe, and returns 0 or
// an errno.
std::function<int()> EnterNode(const NodeSettings& node, Isolation isolation);

// Returns the most that works here, found out with a child process that tries it.
Isolation ProbeIsolation(const std::filesystem::path& hosts_file);

// Returns `base` (an /etc/hosts) with a line "ADDRESS NAME" for each node, and without other lines
// for these names.
std::string HostsFile(absl::string_view base,
                      const std::vector<std::pair<std::string, std::string>>& name_and_address);

}  // namespace tutti::engine
