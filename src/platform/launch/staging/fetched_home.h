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
//
// Whoever calls it holds the lock of the folder. Not thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tutti::launch {

class FetchedHome {
 public:
  // `name` of the file or folder in it; `is_file`: it is one file.
  FetchedHome(std::filesystem::path folder, std::string name, bool is_file)
      : folder_(std::move(folder)), name_(std::move(name)), is_file_(is_file) {}

  // Returns where the data lie.
  std::filesystem::path data() const { return folder_ / "content" / name_; }
  // Returns the folder that a fetch fills.
  std::filesystem::path part() const {
    return is_file_ ? folder_ / "part" : folder_ / "part" / name_;
  }
  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path objects() const { return folder_ / "objects"; }

  // Returns whether the data are there, whole. What a process that was killed had begun to keep is
  // kept first.
  absl::StatusOr<bool> IsThere() const;
  // Makes what lies in part(), which is whole, the data.
  absl::Status Keep() const;

  // Returns whether a file or folder of the data was changed after it was fetched, by the time of
  // its last change; then no other job takes it. Reads no content. It looks at all files, but not
  // again before a hundred times as long has gone by as that has taken: on a folder that many nodes
  // share one of them looks. The folder was touched just now. Cancelled once that is set.
  absl::StatusOr<bool> IsDamaged(const std::atomic<bool>& cancelled) const;

 private:
  absl::Status FinishKeeping() const;
  bool WasLookedAt() const;

  const std::filesystem::path folder_;
  const std::string name_;
  const bool is_file_;
};

}  // namespace tutti::launch
