// ContainedTarget gives files their names below a folder in which others may write meanwhile: it
// follows no link, whoever makes it and whenever, so that nothing lands outside of the folder. Not
// thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace tutti::client {

class ContainedTarget {
 public:
  // Opens the folder, a path without links, and makes `stage` in it, for this user alone, or takes
  // up the one that is there. FailedPrecondition, which names the place, where a part of the path
  // is a link, or where others may write to the stage.
  static absl::StatusOr<ContainedTarget> Open(const std::filesystem::path& folder,
                                              const std::string& stage);

  // Returns a path of the stage for programs that this process starts, as long as this object
  // lives; it leads there whatever the folder has under the stage's name.
  std::filesystem::path stage() const;
  // Gives the stage's file `from` the name `to` below the folder, in folders that are made if they
  // are not there, and in place of what had it. FailedPrecondition, which names it, where a folder
  // on the way is a link or a file.
  absl::Status Take(const std::filesystem::path& from, const std::filesystem::path& to) const;

 private:
  ContainedTarget(std::filesystem::path path, base::UniqueFd folder, base::UniqueFd stage)
      : path_(std::move(path)), folder_(std::move(folder)), stage_(std::move(stage)) {}

  std::filesystem::path path_;
  base::UniqueFd folder_, stage_;
};

}  // namespace tutti::client
