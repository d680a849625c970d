// MemoryFolder is a folder in memory (/dev/shm) for what must not lie on a disk: of mode 0700, and
// held by a lock of the process that made it, so that others of this user find and remove those
// whose processes were killed. It stays when the object goes; whoever makes it removes it.
// Thread-compatible.
#pragma once

#include <filesystem>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"

namespace tutti::base {

class MemoryFolder {
 public:
  // Makes PathOf(kind, name), empty, in the place of one that is there, and removes those of the
  // kind that nobody holds. FailedPrecondition if /dev/shm is not in memory; `what` says of what
  // that is told: "files of secrets".
  static absl::StatusOr<MemoryFolder> Make(absl::string_view kind, absl::string_view name,
                                           absl::string_view what);
  // Returns /dev/shm/tutti-KIND-UID-NAME, whether it is there or not.
  static std::filesystem::path PathOf(absl::string_view kind, absl::string_view name);
  // Removes those of this kind and user that no process holds.
  static void RemoveUnheld(absl::string_view kind);

  const std::filesystem::path& path() const { return path_; }

 private:
  MemoryFolder(std::filesystem::path path, UniqueFd held)
      : path_(std::move(path)), held_(std::move(held)) {}

  std::filesystem::path path_;
  UniqueFd held_;
};

}  // namespace tutti::base
