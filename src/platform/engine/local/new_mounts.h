// NewMounts tells whether something was mounted that processes with a mount namespace of their own,
// made before, do not see: what is mounted on a mount that is not shared comes into no other
// namespace. Where an init system has made all mounts shared nothing is such; in many containers
// and on small systems everything is. Not thread-safe.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "base/unique_fd.h"

namespace tutti::engine {

class NewMounts {
 public:
  NewMounts();

  // Returns whether there are any since the last call, or since this object was made. One system
  // call, unless anything was mounted. False where the kernel does not tell.
  bool Any();

 private:
  bool HaveChanged() const;

  base::UniqueFd mounts_;
  std::set<std::string> known_;  // the numbers of the mounts
};

// Returns the numbers of the mounts in that content of /proc/PID/mountinfo.
std::set<std::string> MountNumbers(absl::string_view mountinfo);
// Returns whether it has one that is not among `known` and lies on a mount that is not shared.
bool HasUnsharedMount(absl::string_view mountinfo, const std::set<std::string>& known);

}  // namespace tutti::engine
