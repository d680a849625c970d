// NewMounts tells whether something was mounted that processes with a mount namespace of their own,
// made before, do not see: what is mounted on a mount that is not shared comes into no other
// namespace. Where an init system has made all mounts shared nothing is such; in many containers
// and on small systems everything is. What a container engine mounts for its containers is none,
// nor a folder that is mounted on itself. A mount that takes the place of another of the same
// source between two looks, with its number, is taken for that one. Not thread-safe.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "base/machine/mounts.h"

namespace tutti::engine {

class NewMounts {
 public:
  NewMounts();

  // Returns whether there are any since the last call, or since this object was made. One system
  // call, unless anything was mounted. False where the kernel does not tell.
  bool Any();

 private:
  base::MountChanges changes_;
  std::set<std::string> known_;  // as MountsIn
};

// Returns what tells the mounts apart in that content of /proc/PID/mountinfo.
std::set<std::string> MountsIn(absl::string_view mountinfo);
// Returns whether it has one that is not among `known` and lies on a mount that is not shared.
bool HasUnsharedMount(absl::string_view mountinfo, const std::set<std::string>& known);

}  // namespace tutti::engine
