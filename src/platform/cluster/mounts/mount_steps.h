// Plans how hosts come to mount the file servers of their cluster, and how they cease to. Pure
// functions.
#pragma once

#include <string>
#include <vector>

#include "platform/cluster/host_facts.h"
#include "platform/cluster/mounts/nfs_mount.h"

namespace tutti::cluster {

struct MountStep {
  std::string what, script;  // as a Step has them (plan.h)
};

// Returns what a node needs so that it mounts these and no other of tutti's, now and at each boot.
// Nothing for one that does.
std::vector<MountStep> MountSteps(const std::vector<NfsMount>& mounts, const HostFacts& host);

// Returns a script that unmounts what the host has of tutti's, and takes it out of /etc/fstab.
std::string UnmountAllText(const HostFacts& host);

// Returns why the node cannot mount them, a line each with its remedy.
std::vector<std::string> MountProblems(const std::vector<NfsMount>& mounts, const HostFacts& host);

}  // namespace tutti::cluster
