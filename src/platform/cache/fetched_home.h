// FetchedHome is the folder in which one version of a place's data lies on a node, shared by all
// jobs that read it:
//
//   content/NAME   the file or folder, which nobody may write to (files 0444, folders 0555); files
//                  that another version has as well are hard links
//   part/          what is fetched, until all of it is there; who was killed goes on there
//   whole/         all of it, while it is made read-only
//   objects        what the program wrote down of the objects; last changed when content was whole
//   damaged        somebody has written to the content all the same: no other job takes it
//   looked         how many seconds it took to look for that; last changed when it was done
//   exposed        last changed when a job began or ended whose processes could write to it
//   verified       in which start of the machine all files were last what the store gave, by their
//                  hashes
//
// Whoever calls it holds the lock of the folder. Not thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tutti::cache {

// On a disk of the node's own its first use after a start of the machine finds what a power failure
// or the disk has damaged. A folder that nodes share has a server that looks after it.
enum class Reread { kOnceABoot, kNever };

class FetchedHome {
 public:
  // `name` of the file or folder in it; `is_file`: it is one file.
  FetchedHome(std::filesystem::path folder, std::string name, bool is_file)
      : folder_(std::move(folder)), name_(std::move(name)), is_file_(is_file) {}

  // Returns the one that a folder holds, if its data are there.
  static std::optional<FetchedHome> In(const std::filesystem::path& folder);

  // Returns where the data lie.
  std::filesystem::path data() const { return folder_ / "content" / name_; }
  // Returns the folder that a fetch fills.
  std::filesystem::path part() const {
    return is_file_ ? folder_ / "part" : folder_ / "part" / name_;
  }
  // Returns the folder that the objects' paths are relative to.
  std::filesystem::path files() const { return is_file_ ? data().parent_path() : data(); }
  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path objects() const { return folder_ / "objects"; }

  // Returns whether the data are there, whole. What a process that was killed had begun to keep is
  // kept first.
  absl::StatusOr<bool> IsThere() const;
  // Makes what lies in part(), which is whole, the data. `is_verified`: all of it was hashed on its
  // way to the disk since this machine was started.
  absl::Status Keep(bool is_verified = true) const;

  // Returns whether the data are no longer what was fetched; then no other job takes them. With
  // `kOnceABoot` it reads all files, if no one has in this start of the machine, and compares their
  // hashes with those that the fetch wrote down. Else it tells by the time of the last change
  // whether a file or folder was changed, and reads no content. It looks at all files, but not
  // again before a hundred times as long has gone by as that has taken, unless NoteExposed was
  // called since: on a folder that many nodes share one of them looks. The folder was touched just
  // now. Cancelled once that is set.
  absl::StatusOr<bool> IsDamaged(Reread reread, const std::atomic<bool>& cancelled) const;
  // Notes that a job which could write to the content begins or has ended: the next IsDamaged looks
  // at all files, however lately somebody has. Needs no lock.
  void NoteExposed() const;
  // Returns whether all files were what was fetched when they were last read, in this start of the
  // machine.
  bool IsVerified() const;
  // Returns the first file, relative to the data, that is not what was fetched, by its hash; none
  // if all are. Reads all that the fetch has noted, by several threads. Cancelled once that is set.
  absl::StatusOr<std::optional<std::string>> FirstDamaged(const std::atomic<bool>& cancelled) const;

 private:
  absl::Status FinishKeeping() const;
  bool WasLookedAt() const;
  void NoteVerified() const;
  absl::StatusOr<bool> WasWrittenTo(const std::atomic<bool>& cancelled) const;
  std::filesystem::path FileOf(const std::string& path) const;

  std::filesystem::path folder_;
  std::string name_;
  bool is_file_;
};

}  // namespace tutti::cache
