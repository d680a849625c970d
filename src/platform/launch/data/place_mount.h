// PlaceMount is a folder of a store that is mounted on this node, to be read: of an input whose job
// asks for a mount (docs/decisions/110-mounts.md) in place of a copy in the node's cache.
//
//   Azure's, S3's and Google's stores   rclone mount, by FUSE
//   an NFS server                       mount(8), by the kernel's client; needs root
//
// Whether a node may do either is known when it has been tried: each failure is a line for the
// job's user, and the caller fetches the input then. The mount outlives this process if that is
// killed. The launcher that follows ends rclone, as all that has the allocation's marks, and calls
// Unmount, which sees the mount where both are in one mount namespace. Not thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/process/child_process.h"
#include "platform/launch/process/own_children.h"
#include "platform/storage/storage_request.h"

namespace tutti::launch {

class PlaceMount {
 public:
  // Mounts the place of `request`, a folder that the store has (rclone shows one that it has not as
  // an empty one), at `folder`, an empty one too; blocks until it is mounted. The program that
  // serves it has `marks` in its environment, so that whoever ends an allocation's processes finds
  // it, and what it says goes into a file beside the folder. FailedPrecondition: this node, or this
  // place, cannot be mounted; Unavailable: the program that mounts said that it failed; Cancelled
  // once `cancelled` is set. To be called, and destroyed, by another thread than that which waits
  // for the job's processes (own_children.h).
  static absl::StatusOr<std::unique_ptr<PlaceMount>> Make(
      const storage::StorageRequest& request, const std::filesystem::path& folder,
      const std::map<std::string, std::string>& marks, const std::atomic<bool>& cancelled);
  // Unmounts it, also while processes read there: they keep what they have opened.
  ~PlaceMount();
  PlaceMount(const PlaceMount&) = delete;
  PlaceMount& operator=(const PlaceMount&) = delete;

 private:
  explicit PlaceMount(const std::filesystem::path& folder)
      : folder_(folder), log_(folder.native() + ".log") {}
  absl::Status StartRclone(const storage::StorageRequest& request,
                           const std::map<std::string, std::string>& marks,
                           const std::atomic<bool>& cancelled);
  // Returns the last line that rclone has said.
  std::string LastWords() const;

  const std::filesystem::path folder_, log_;
  std::unique_ptr<base::ChildProcess> rclone_;
  OwnChild noted_;
};

// Ends the mount at `folder`, of whichever process; nothing if there is none.
void Unmount(const std::filesystem::path& folder);

// Returns a file of rclone's configuration in which the store of the place, with its credentials,
// is called "store"; of a key of Azure's a signature stands there, for 30 days from `now`.
// FailedPrecondition where rclone cannot be given the store. Pure; thread-safe.
absl::StatusOr<std::string> RcloneConfig(const spec::DataPlace& place,
                                         const storage::Credentials& credentials, absl::Time now);
// Returns the words of the mount(8) that mounts the place of an NFS server at `folder`. Pure;
// thread-safe.
std::vector<std::string> NfsMountWords(const spec::DataPlace& place,
                                       const std::filesystem::path& folder);

}  // namespace tutti::launch
