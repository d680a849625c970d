// Says on which mounts of this machine paths lie, without asking a file system that may be on a
// server that is away, where even a look at a name hangs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::base {

struct Mount {
  std::string point;  // absolute, "/" or without a "/" at its end
  std::string type;   // as the kernel names it: "ext4", "nfs4", "fuse.sshfs"
};

// Reads the mounts that this process sees, in the order in which they were made; none if the kernel
// does not say.
std::vector<Mount> ReadMounts();
// Reads the same from the content of /proc/PID/mountinfo.
std::vector<Mount> MountsFrom(absl::string_view mountinfo);

// Returns whether all that a file system of that type needs is this machine's own. A type that is
// not known may need a server.
bool IsLocal(absl::string_view type);

// Returns the point of the first mount on the way to that absolute path that is not local; "" if
// all are, the root aside. Links are followed, those of local file systems only.
std::string RemoteMountOf(const std::filesystem::path& path, const std::vector<Mount>& mounts);

}  // namespace tutti::base
