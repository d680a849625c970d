// Says on which mounts of this machine paths lie, without asking a file system that may be on a
// server that is away, where even a look at a name hangs.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/unique_fd.h"

namespace tutti::base {

struct Mount {
  std::string point;         // absolute, "/" or without a "/" at its end
  std::string type;          // as the kernel names it: "ext4", "nfs4", "fuse.sshfs"
  std::string options = {};  // of the mount alone: "rw,nosuid,nodev,relatime"
  int id = 0;                // another one once it was mounted anew
};

// Reads the mounts that this process sees, in the order in which they were made; none if the kernel
// does not say.
std::vector<Mount> ReadMounts();
// Reads the same from the content of /proc/PID/mountinfo.
std::vector<Mount> MountsFrom(absl::string_view mountinfo);

// Tells whether a mount that this process sees was made or changed, or has gone, by the poll of
// proc_pid_mountinfo(5). One system call. Not thread-safe.
class MountChanges {
 public:
  MountChanges();
  // Returns whether there was a change since the last call, or since this object was made.
  bool Any();
  // Returns whether the kernel tells; else Any is always true.
  bool are_told() const { return file_.valid(); }

 private:
  UniqueFd file_;
};

// The mounts that this process sees, read again where one has changed. Thread-safe.
class WatchedMounts {
 public:
  // Returns what ReadMounts does.
  std::shared_ptr<const std::vector<Mount>> Now() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  MountChanges changes_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const std::vector<Mount>> mounts_ ABSL_GUARDED_BY(mutex_);
};

// Returns the mount that an absolute path without links lies on; null if the mounts have none.
const Mount* MountOf(const std::string& path, const std::vector<Mount>& mounts);

// Returns whether all that a file system of that type needs is this machine's own. A type that is
// not known may need a server.
bool IsLocal(absl::string_view type);

// Returns the point of the first mount on the way to that absolute path that is not local; "" if
// all are, the root aside. Links are followed, those of local file systems only.
std::string RemoteMountOf(const std::filesystem::path& path, const std::vector<Mount>& mounts);

}  // namespace tutti::base
