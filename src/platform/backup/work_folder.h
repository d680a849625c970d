// WorkFolder is a temporary folder beside what is being made, for its owner alone, removed with the
// object. One that a killed process has left is emptied and used. Two processes never have the
// same.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace tutti::backup {

class WorkFolder {
 public:
  // Opens the folder; FailedPrecondition if another process has it; `busy` says what that one does.
  static absl::StatusOr<WorkFolder> Open(std::filesystem::path path, const std::string& busy);
  WorkFolder(WorkFolder&& other) noexcept;
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder();

  const std::filesystem::path& path() const { return path_; }
  // Moves it to `target`, which is not there or an empty folder.
  absl::Status MoveTo(const std::filesystem::path& target);
  // Moves it to `target`, a folder with something in it, and that to "TARGET.aside-TIME", which is
  // returned. Nothing is removed; at each moment `target` is one of them as a whole, and the other
  // stands aside, or still under its own name. Where the file system cannot exchange two names
  // `target` is nothing between two calls. `on_step`, if there is one, is called before each.
  absl::StatusOr<std::filesystem::path> TakePlaceOf(const std::filesystem::path& target,
                                                    const std::string& time,
                                                    const std::function<void()>& on_step);

 private:
  WorkFolder(std::filesystem::path path, base::UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::filesystem::path path_;  // empty: it is nobody's any more
  base::UniqueFd lock_;
};

}  // namespace tutti::backup
