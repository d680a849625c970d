// StagingFolder is where files arrive until they are whole: a hidden folder of the one that they go
// to, so that both lie on one file system, whichever that is, and a rename is all that is left.
// Where a folder below that one is a link to another disk, or a mount, what goes there arrives
// hidden at the top of that file system.
// Each process has names of its own: what a process that was killed has left, the next one removes.
// Thread-safe; copies are one folder.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/threads/janitor.h"

namespace tutti::service {

class StagingFolder {
 public:
  // Makes nothing yet. No file that goes to `parent` has a name that begins with a dot.
  explicit StagingFolder(std::filesystem::path parent);

  const std::filesystem::path& path() const { return path_; }
  // Returns a path of nothing yet, from which MoveIntoPlace reaches a name in `folder`, which is
  // there and is `parent` or below it.
  absl::StatusOr<std::filesystem::path> NewPathFor(const std::filesystem::path& folder) const;
  // Has the janitor remove those of earlier processes. Reads the parent, which may hang. What lies
  // on another file system is removed by the first NewPathFor there.
  void RemoveEarlier(base::Janitor& janitor) const;

 private:
  struct Tops;  // of other file systems: where what earlier processes left was looked for
  void RemoveEarlierAt(const std::filesystem::path& top) const;

  std::filesystem::path parent_, path_;
  std::shared_ptr<Tops> tops_;
};

// Whether a file or folder of that name, on another file system than the others, is arriving.
bool IsArriving(absl::string_view name);

// Gives what has arrived its name, or another, as MoveIntoPlace does.
using MoveResult =
    std::function<absl::Status(const std::filesystem::path& arrived, const std::filesystem::path&)>;

// Renames what has arrived to its name. InvalidArgument, which names the remedy, where no rename
// leads from the one to the other: no later try helps.
absl::Status MoveIntoPlace(const std::filesystem::path& arrived, const std::filesystem::path& path);

}  // namespace tutti::service
